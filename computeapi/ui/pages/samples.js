// Documents that a schema takes: the least that it asks for, and one more field at a time.

const SEVERAL = ['oneOf', 'anyOf', 'allOf']

// The least document of a schema; texts that nobody can guess are empty.
export function least(nodes, number) {
  const node = nodes[number]
  if ('const' in node) return node.const
  if ('default' in node) return node.default
  if (node.enum) return node.enum[0]
  const type = [node.type ?? []].flat()[0]
  if (type === 'object' || node.properties) return leastObject(nodes, node)
  if (type === 'array') return node.items && node.minItems ? [least(nodes, node.items.node)] : []
  const inside = SEVERAL.flatMap((keyword) => node[keyword] ?? [])
  if (inside.length && type === undefined) return least(nodes, inside[0])
  if (type === 'integer' || type === 'number') return node.minimum ?? 1
  return { boolean: false, null: null }[type] ?? (type === 'string' ? '' : null)
}

function leastObject(nodes, node) {
  const names = node.required ?? []
  return Object.fromEntries(names.filter((each) => node.properties?.[each] !== undefined)
    .map((each) => [each, least(nodes, node.properties[each])]))
}

// The document with a sample of what stands at a path such as /server/networks[]/uuid, and in what holds it.
export function withField(document, path, value) {
  const parts = path.split('/').slice(1)
  const whole = structuredClone(document ?? {})
  let place = whole
  parts.forEach((part, at) => {
    const name = part.replaceAll('[]', '')
    if (at === parts.length - 1) {
      place[name] = value
    } else if (part.endsWith('[]')) {
      if (!Array.isArray(place[name]) || !place[name].length) place[name] = [{}]
      if (typeof place[name][0] !== 'object') place[name][0] = {}
      place = place[name][0]
    } else {
      if (typeof place[name] !== 'object' || place[name] === null) place[name] = {}
      place = place[name]
    }
  })
  return whole
}
