// The differences between two versions, as in computeapi/web/history.py; a test compares the two.

const NESTED = new Set(['properties', 'patternProperties', 'items', 'oneOf', 'anyOf', 'allOf', 'required'])
export const PARTS = ['query', 'body', 'response']

// { kind: 'added' | 'removed' | 'changed', what: { body: ['+/server/tags'] } }; null if nothing differs.
export function difference(operation, from, to) {
  const [before, after] = [operation.at(from), operation.at(to)]
  if (before === after) return null
  if (!before || !after) return { kind: after ? 'added' : 'removed', what: {} }
  const what = Object.fromEntries(changesBetween(operation.reference.nodes, before, after).filter(([, details]) => details.length))
  return Object.keys(what).length ? { kind: 'changed', what } : null
}

// [{ operation, kind, what }], in the order of the table.
export function differences(reference, from, to) {
  return reference.operations
    .map((operation) => ({ operation, found: difference(operation, from, to) }))
    .filter(({ found }) => found)
    .map(({ operation, found }) => ({ operation, ...found }))
}

function changesBetween(nodes, before, after) {
  const plain = (name, old, now) => [name, old === now ? [] : [`${old} -> ${now}`]]
  const unknown = (step) => step.unknown ?? 'ignored'
  const behaviour = Object.entries(after.behaviour ?? {})
    .filter(([name, value]) => JSON.stringify(before.behaviour?.[name]) !== JSON.stringify(value))
    .map(([name]) => name)
  const taken = before.method !== after.method || before.summary !== after.summary ? [after.summary] : []
  return [
    plain('status', before.statuses[0], after.statuses[0]),
    plain('media type', before.media_type, after.media_type),
    plain('unknown parameters', unknown(before), unknown(after)),
    ...PARTS.map((part) => [part, compare(nodes, before[part], after[part], part === 'query')]),
    ['behaviour', [...behaviour, ...taken]],
  ]
}

// +/field, -/field and ~/field between two schemas.
export function compare(nodes, before, after, always = false) {
  if (before === after) return []
  const [old, now] = [fields(nodes, before, always), fields(nodes, after, always)]
  const marks = new Map()
  for (const path of now.keys()) if (!old.has(path)) marks.set(path, '+')
  for (const path of old.keys()) if (!now.has(path)) marks.set(path, '-')
  const moved = new Map(marks)
  for (const [path, facts] of old) {
    if (now.has(path) && lasting(facts, path, moved) !== lasting(now.get(path), path, moved)) marks.set(path, '~')
  }
  if (marks.size > 1 && (marks.get('') ?? '~') !== '~') marks.delete('')
  return [...marks.keys()].filter((path) => !isHeld(path, marks)).sort().map((path) => marks.get(path) + (path || '/'))
}

// Whether a field was added or removed together with one that contains it.
function isHeld(path, marks) {
  if (marks.get(path) === '~') return false
  return [...marks].some(([outer, mark]) => mark === marks.get(path)
    && (path.startsWith(`${outer}/`) || path.startsWith(`${outer}[`)) && outer !== path)
}

// The facts of a field, without those that only say which fields below it were added or removed.
function lasting(facts, path, marks) {
  return JSON.stringify(facts.map(([rest, required]) => [
    rest, [...new Set(required)].filter((name) => !marks.has(`${path}/${name}`)).sort(),
  ]))
}

// Each field by path, with its facts; alternatives may have several.
function fields(nodes, number, always) {
  const found = new Map()
  if (number !== undefined) walk(nodes, nodes[number], '', found)
  else if (always) found.set('', [['[]', []]])
  return found
}

function walk(nodes, node, path, found) {
  const kept = Object.entries(node).filter(([keyword]) => !NESTED.has(keyword)).sort(([one], [other]) => (one < other ? -1 : 1))
  if (!found.has(path)) found.set(path, [])
  found.get(path).push([JSON.stringify(kept), node.required ?? []])
  for (const keyword of ['properties', 'patternProperties']) {
    for (const [name, child] of Object.entries(node[keyword] ?? {})) walk(nodes, nodes[child], `${path}/${name}`, found)
  }
  if (node.items?.node !== undefined) walk(nodes, nodes[node.items.node], `${path}[]`, found)
  for (const keyword of ['oneOf', 'anyOf', 'allOf']) {
    for (const child of node[keyword] ?? []) walk(nodes, nodes[child], path, found)
  }
}
