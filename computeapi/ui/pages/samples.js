// Sample documents for a schema.

const SEVERAL = ['oneOf', 'anyOf', 'allOf']

// The smallest document of a schema; texts without a default are empty.
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
