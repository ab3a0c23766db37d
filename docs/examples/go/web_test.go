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

func TestABusyCloudIsAskedAgain(t *testing.T) {
	cloud := newCloud(t)
	control(t, "POST", "/faults", `{"operation": "POST /servers", "status": 503, "count": 2}`)
	if _, err := cloud.Boot("web", "cirros-0.6.3-x86_64-disk", "1"); err != nil {
		t.Fatal(err)
	}
	if asked := control(t, "GET", "/journal?operation=POST+/servers", "").Count; asked != 3 {
		t.Errorf("it was asked for %d servers", asked)
	}
}

// newCloud is the cloud as it was at first.
func newCloud(t *testing.T) *Cloud {
	t.Helper()
	control(t, "POST", "/reset", "")
	cloud, err := Connect()
	if err != nil {
		t.Fatal(err)
	}
	return cloud
}

// control asks the control API of the cloud; how many there are is all that these tests read of what it answers.
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
