// Schemas as rows of fields, and in words.

const SEVERAL = ['oneOf', 'anyOf', 'allOf']
const BY_NAME = ['properties', 'patternProperties']
const PLURAL = { object: 'objects', string: 'strings', integer: 'integers', number: 'numbers', boolean: 'booleans' }

// The fields of a schema in order, including alternatives: [{ path, name, pattern, depth, required, nodes }].
export function rows(nodes, number) {
  const found = new Map()
  if (number === undefined) return []
  collect(nodes, number, '', 0, found)
  if (!found.size) found.set('', { path: '', name: '', depth: 0, required: false, nodes: [number] })
  return [...found.values()]
}

function collect(nodes, number, path, depth, found) {
  const node = nodes[number]
  for (const keyword of BY_NAME) {
    for (const [name, child] of Object.entries(node[keyword] ?? {})) {
      const below = `${path}/${name}`
      const row = found.get(below) ?? {
        path: below, name, pattern: keyword === 'patternProperties', depth, required: false, nodes: [],
      }
      row.nodes.push(child)
      row.required ||= Boolean(node.required?.includes(name))
      found.set(below, row)
      collect(nodes, child, below, depth + 1, found)
    }
  }
  const items = node.items?.node
  if (items !== undefined) collect(nodes, items, `${path}[]`, depth, found)
  for (const keyword of SEVERAL) for (const child of node[keyword] ?? []) collect(nodes, child, path, depth, found)
}

// The values of a field, in words: { text, values }; values: those of an enumeration.
export function described(nodes, numbers) {
  const parts = [...new Set(numbers.map((number) => inWords(nodes, number)).filter(Boolean))]
  const values = [...new Set(numbers.flatMap((number) => enumerated(nodes, number)))]
  return { text: parts.join(' or ') || 'anything', values }
}

function enumerated(nodes, number) {
  const node = nodes[number]
  const inside = ['oneOf', 'anyOf'].flatMap((keyword) => node[keyword] ?? []).flatMap((child) => enumerated(nodes, child))
  return [...(node.enum ?? []), ...inside].filter((value) => value !== null).map(String)
}

function inWords(nodes, number) {
  const node = nodes[number]
  const alternatives = [...(node.oneOf ?? []), ...(node.anyOf ?? [])].map((child) => inWords(nodes, child))
  const all = (node.allOf ?? []).map((child) => inWords(nodes, child)).filter(Boolean)
  const either = [...new Set(alternatives.filter(Boolean))].join(' or ')
  return [own(nodes, node), either, ...all].filter(Boolean).join(', ')
}

function own(nodes, node) {
  if ('const' in node) return JSON.stringify(node.const)
  const types = [node.type ?? []].flat()
  if (node.enum) {
    const kinds = types.filter((type) => type !== 'string')
    return ['one of these', ...kinds].join(' or ')
  }
  const limits = [...counted(node), ...ranged(node)]
  if (node.pattern) limits.push(`/${node.pattern}/`)
  return [kind(nodes, node, types), ...limits].filter(Boolean).join(', ')
}

function kind(nodes, node, types) {
  return types.map((type) => {
    if (type === 'string' && node.format) return node.format === 'uuid' ? 'UUID' : `string (${node.format})`
    if (type === 'array') return node.items ? `list of ${plural(inWords(nodes, node.items.node))}` : 'list'
    if (type === 'object' && node.additionalProperties?.node !== undefined) {
      return `object of ${plural(inWords(nodes, node.additionalProperties.node))}`
    }
    return type
  }).join(' or ')
}

function plural(text) {
  const [, word, rest] = /^(\w+)(.*)$/s.exec(text) ?? [null, text, '']
  return (PLURAL[word] ?? word) + rest
}

function* counted(node) {
  const [low, high] = [node.minLength, node.maxLength]
  if (high === 0) yield 'empty'
  else if (low !== undefined && high !== undefined) yield low === high ? `${low} characters` : `${low} to ${high} characters`
  else if (high !== undefined) yield `at most ${high} characters`
  else if (low !== undefined) yield low === 1 ? 'not empty' : `at least ${low} characters`
  for (const [few, many] of [[node.minItems, node.maxItems], [node.minProperties, node.maxProperties]]) {
    if (few) yield `at least ${few}`
    if (many !== undefined) yield `at most ${many}`
  }
  if (node.uniqueItems) yield 'each once'
}

function* ranged(node) {
  if (node.minimum !== undefined && node.maximum !== undefined) yield `${node.minimum} to ${node.maximum}`
  else if (node.minimum !== undefined) yield `at least ${node.minimum}`
  else if (node.maximum !== undefined) yield `at most ${node.maximum}`
  if (node.exclusiveMinimum !== undefined) yield `more than ${node.exclusiveMinimum}`
}
