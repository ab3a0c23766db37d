// A request as a shell command and as programs.

const VERBS = { GET: 'Get', POST: 'Post', PUT: 'Put', DELETE: 'Delete', PATCH: 'Patch' }

// [{ name, text }] for { method, path, version, body (a document or undefined), statuses, answers (whether there is a
// response body), cloud, command }.
export function snippets(request, origin) {
  return [
    { name: 'curl', text: curl(request, origin) },
    request.command && { name: 'openstack', text: openstack(request) },
    { name: 'openstacksdk', text: sdk(request) },
    { name: 'gophercloud', text: gophercloud(request) },
  ].filter(Boolean)
}

function curl({ method, path, version, body }, origin) {
  const lines = [`curl ${method === 'GET' ? '' : `-X ${method} `}${shell(`${origin}/v2.1${path}`)}`,
    '  -H "X-Auth-Token: $(openstack token issue -f value -c id)"', `  -H 'OpenStack-API-Version: compute ${version}'`]
  if (body !== undefined) lines.push("  -H 'Content-Type: application/json'", `  -d ${shell(JSON.stringify(body))}`)
  return lines.join(' \\\n')
}

function openstack({ command, version, cloud }) {
  return `openstack --os-cloud ${shell(cloud)} --os-compute-api-version ${version} ${command}`
}

function sdk({ method, path, version, body, cloud }) {
  const json = body === undefined ? '' : `    json=${python(body, '    ')},\n`
  return `import openstack

compute = openstack.connect(cloud=${python(cloud)}).compute
answer = compute.${method.toLowerCase()}(
    ${python(path)},
${json}    microversion='${version}',
)
print(answer.status_code, answer.text)
`
}

function gophercloud({ method, path, version, body, statuses, answers }) {
  const [place, query] = path.slice(1).split('?')
  const url = `client.ServiceURL(${place.split('/').map((part) => JSON.stringify(part)).join(', ')})${query === undefined ? '' : `+${JSON.stringify(`?${query}`)}`}`
  const sent = method === 'POST' || method === 'PUT' || method === 'PATCH' ? [body === undefined ? 'nil' : 'body'] : []
  const taken = method === 'DELETE' ? [] : [answers ? '&answer' : 'nil']
  const options = `&gophercloud.RequestOpts{OkCodes: []int{${statuses.join(', ')}}}`
  const read = answers && taken.length > 0
  return [GO_BEGINNING(body !== undefined), `	client.Microversion = ${JSON.stringify(version)}`,
    body !== undefined && `	body := map[string]any{}\n	must(json.Unmarshal([]byte(${go(JSON.stringify(body, null, 2))}), &body))`, read && '	var answer any',
    `	response, err := client.${VERBS[method]}(${['ctx', url, ...sent, ...taken, options].join(', ')})\n	must(err)`,
    `	fmt.Println(${read ? 'response.StatusCode, answer' : 'response.StatusCode'})`, '}\n'].filter(Boolean).join('\n')
}

const GO_BEGINNING = (json) => `package main

import (
	"context"
${json ? '	"encoding/json"\n' : ''}	"fmt"
	"log"
	"os"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	ctx := context.Background()
	provider, err := openstack.AuthenticatedClient(ctx, gophercloud.AuthOptions{
		IdentityEndpoint: os.Getenv("OS_AUTH_URL"),
		Username:         os.Getenv("OS_USERNAME"),
		Password:         os.Getenv("OS_PASSWORD"),
		TenantName:       os.Getenv("OS_PROJECT_NAME"),
		DomainName:       os.Getenv("OS_USER_DOMAIN_NAME"),
	})
	must(err)
	client, err := openstack.NewComputeV2(provider, gophercloud.EndpointOpts{Region: os.Getenv("OS_REGION_NAME")})
	must(err)`

export function shell(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`
}

const go = (text) => (text.includes('`') ? JSON.stringify(text) : `\`${text}\``)

// A document in Python syntax.
export function python(value, indent = '') {
  const inside = `${indent}    `
  if (value === null) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (typeof value === 'string') return JSON.stringify(value)
  if (Array.isArray(value)) return value.length ? `[\n${value.map((each) => `${inside}${python(each, inside)},\n`).join('')}${indent}]` : '[]'
  if (typeof value === 'object') {
    const items = Object.entries(value).map(([name, each]) => `${inside}${JSON.stringify(name)}: ${python(each, inside)},\n`)
    return items.length ? `{\n${items.join('')}${indent}}` : '{}'
  }
  return String(value)
}
