package web

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
)

func TestAServerBoots(t *testing.T) {
	server, err := newCloud(t).Boot("web", "cirros-0.6.3-x86_64-disk", "1")
	if err != nil {
		t.Fatal(err)
	}
	if server.Addresses["web"] == nil || server.KeyName != "web" {
		t.Errorf("the server has %v and the key %q", server.Addresses, server.KeyName)
	}
}

func TestItRetriesWhileTheCloudIsBusy(t *testing.T) {
	cloud := newCloud(t)
	control(t, "POST", "/faults", `{"operation": "POST /servers", "status": 503, "count": 2}`)
	if _, err := cloud.Boot("web", "cirros-0.6.3-x86_64-disk", "1"); err != nil {
		t.Fatal(err)
	}
	if count := control(t, "GET", "/journal?operation=POST+/servers", "").Count; count != 3 {
		t.Errorf("%d requests for servers instead of 3", count)
	}
}

// newCloud resets the cloud and logs in.
func newCloud(t *testing.T) *Cloud {
	t.Helper()
	control(t, "POST", "/reset", "")
	cloud, err := Connect()
	if err != nil {
		t.Fatal(err)
	}
	return cloud
}

// control calls the control API of the cloud. Of the response, these tests only need the count.
func control(t *testing.T, method, path, body string) (answer struct{ Count int }) {
	t.Helper()
	request, err := http.NewRequest(method, os.Getenv("COMPUTEAPI_CONTROL_URL")+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Control-Token", os.Getenv("COMPUTEAPI_CONTROL_TOKEN"))
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		t.Fatalf("%s %s: %d %s %v", method, path, response.StatusCode, text, err)
	}
	_ = json.Unmarshal(text, &answer)
	return answer
}
