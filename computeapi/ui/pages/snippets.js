// The same request for a shell, and for programs.

const VERBS = { GET: 'Get', POST: 'Post', PUT: 'Put', DELETE: 'Delete', PATCH: 'Patch' }

// [{ name, text }] for { method, path, version, body (a document or undefined), statuses, cloud, command }.
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
  return `openstack --os-cloud ${cloud} --os-compute-api-version ${version} ${command}`
}

function sdk({ method, path, version, body, cloud }) {
  const json = body === undefined ? '' : `    json=${python(body, '    ')},\n`
  return `import openstack

compute = openstack.connect(cloud='${cloud}').compute
answer = compute.${method.toLowerCase()}(
    ${python(path)},
${json}    microversion='${version}',
)
print(answer.status_code, answer.text)
`
}

function gophercloud({ method, path, version, body, statuses }) {
  const url = `client.ServiceURL(${path.slice(1).split('?')[0].split('/').map((part) => JSON.stringify(part)).join(', ')})`
  const query = path.includes('?') ? `+${JSON.stringify(path.slice(path.indexOf('?')))}` : ''
  const asked = { GET: ['&answer'], DELETE: [], POST: ['body', '&answer'], PUT: ['body', '&answer'] }[method] ?? ['body', '&answer']
  const lines = [`client.Microversion = ${JSON.stringify(version)}`]
  if (asked.includes('body')) lines.push(`body := map[string]any{}`, `err := json.Unmarshal([]byte(${go(JSON.stringify(body ?? {}, null, 2))}), &body)`)
  if (asked.includes('&answer')) lines.push('var answer map[string]any')
  const options = `&gophercloud.RequestOpts{OkCodes: []int{${statuses.join(', ')}}}`
  lines.push(`response, err := client.${VERBS[method]}(${['ctx', url + query, ...asked, options].join(', ')})`)
  return `// client: from openstack.NewComputeV2 of github.com/gophercloud/gophercloud/v2\n${lines.join('\n')}\n`
}

export function shell(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`
}

const go = (text) => (text.includes('`') ? JSON.stringify(text) : `\`${text}\``)

// A document as Python writes it.
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
