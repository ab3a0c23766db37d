// The kinds of values that a schema allows for a field, each of which has its form: { type, number, types, values }.
// type: object, array, null, choice (of `values`), scalar (of `types`: string, integer, number, in the order of the
// schema), or json for everything else. number: of the schema.

const SEVERAL = ['oneOf', 'anyOf', 'allOf']
const SCALARS = ['string', 'integer', 'number']
// Texts that also mean true or false.
const SPELLINGS = /^(true|false|on|off|yes|no|t|f|y|n|0|1)$/i

// Each kind once, including those of alternatives; at least one.
export function alternatives(nodes, number) {
  if (number === undefined) return [{ type: 'json', number }]
  const found = []
  for (const kind of kindsOf(nodes, number)) {
    const same = found.find(({ type }) => type === kind.type)
    if (!same) found.push(kind)
    else if (kind.type === 'scalar') same.types = [...new Set([...same.types, ...kind.types])]
    else if (kind.type === 'choice') same.values = [...new Set([...same.values, ...kind.values])]
  }
  return found
}

function kindsOf(nodes, number) {
  const node = nodes[number]
  if ('const' in node) return [{ type: 'choice', number, values: [node.const] }]
  if (node.enum) return [{ type: 'choice', number, values: spelledOnce(node.enum) }]
  const types = [node.type ?? (node.properties ? 'object' : [])].flat()
  if (types.length) return types.map((type) => ofType(type, number, node))
  const inside = SEVERAL.flatMap((keyword) => node[keyword] ?? [])
  return inside.length ? inside.flatMap((child) => kindsOf(nodes, child)) : [{ type: 'json', number }]
}

function ofType(type, number, node) {
  if (SCALARS.includes(type)) return { type: 'scalar', number, types: [type] }
  if (type === 'boolean') return { type: 'choice', number, values: [true, false] }
  return { type: type === 'object' && isFree(node) ? 'json' : type, number }
}

// Whether the content of an object is not restricted.
const isFree = ({ properties, patternProperties, additionalProperties }) => !properties && !patternProperties && additionalProperties?.node === undefined && additionalProperties !== false

// Without the texts for true and false, if these are among the values.
function spelledOnce(values) {
  return values.includes(true) ? values.filter((value) => typeof value !== 'string' || !SPELLINGS.test(value)) : [...values]
}

export function typeOf(value) {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

// Whether a form of this kind can edit a value.
export function fits({ type, values, types }, value) {
  if (type === 'choice') return values.includes(value)
  if (type === 'scalar') return typeof value === 'string' || (typeof value === 'number' && types.some((each) => each !== 'string'))
  return type === 'json' || type === typeOf(value)
}

// The input, as the first type that it fits.
export function fromText(types, text) {
  const numeric = /^-?\d+$/.test(text) || (types.includes('number') && /^-?\d*\.?\d+$/.test(text))
  return types[0] !== 'string' && numeric && Number.isSafeInteger(Math.trunc(Number(text))) ? Number(text) : text
}
