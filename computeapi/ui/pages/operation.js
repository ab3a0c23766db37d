// An operation at one version, or at two side by side: its facts, parameters, bodies and responses.

import { PARTS } from './differences.js'
import { h } from './dom.js'
import { method, title } from './operations.js'
import { versionsInWords } from './reference.js'
import { described, rows } from './schemas.js'

const NAMES = { query: 'Query parameters', body: 'Request body', response: 'Response' }
const MAX_VALUES = 12

// state: { version, other, operation, field }; at(version) returns the address of the operation at that version.
export function operationView(reference, state, at, trial = null) {
  const { operation, version, other } = state
  const [from, to] = other === null ? [null, version] : [Math.min(version, other), Math.max(version, other)]
  const columns = from === null || from === to ? [to] : [from, to]
  const steps = columns.map((each) => operation.at(each))
  const newest = steps.findLast(Boolean)
  return h('article', { class: 'operation' },
    h('header', {}, h('h2', {}, method(operation), title(operation)),
      h('p', { class: 'summary' }, (newest ?? operation.steps.find((step) => 'statuses' in step)).summary), life(operation, at)),
    newest ? [facts(reference, columns, steps), trial, PARTS.map((part) => section(operation, part, columns, steps, state.field))]
      : h('p', { class: 'absent' }, `It does not exist in ${reference.name(version)}.`))
}

function life(operation, at) {
  const { reference, lifetime } = operation
  const name = (number) => h('a', { href: at(number) }, reference.name(number))
  return h('p', { class: 'life' }, lifetime.map(([low, high], place) => [
    place > 0 && ', ', high === reference.newest ? ['since ', name(low)] : [name(low), high !== low && [' to ', name(high)]],
  ]), steps(operation, name))
}

function steps({ steps: all, lifetime }, name) {
  const inside = all.filter(({ from, statuses }) => statuses && !lifetime.some(([low]) => low === from))
  return inside.length > 0 && ['; changed in ', inside.map(({ from }, place) => [place > 0 && ', ', name(from)])]
}

// ------------------------------------------------------------------ facts

function facts(reference, columns, found) {
  const differ = (get) => found.length > 1 && JSON.stringify(found.map((step) => step && get(step))) !== JSON.stringify(found.map(() => found[1] && get(found[1])))
  const row = (text, get, show) => {
    const each = found.map((step) => (step ? get(step) : undefined))
    if (each.every((value) => value === undefined || value === null || (Array.isArray(value) && !value.length))) return null
    const apart = differ(get)
    return [h('dt', {}, text), (apart ? each : each.slice(-1)).map((value, place) => h('dd', { class: apart ? 'apart' : null },
      apart && h('span', { class: 'column' }, reference.name(columns[place])),
      value === undefined || value === null ? h('span', { class: 'quiet' }, 'none') : show(value)))]
  }
  return h('dl', { class: 'facts' },
    row('Rule', (step) => step.policy, (number) => rule(reference.policies[number])),
    row('Other rules', (step) => step.also, (numbers) => alsoAsked(reference, numbers)),
    row('Answers', (step) => step.statuses, (statuses) => codes(reference, statuses, 'good')),
    row('Errors', (step) => step.errors, (statuses) => codes(reference, statuses, 'bad')),
    row('Media type', (step) => (step.media_type === 'application/json' ? null : step.media_type), (text) => h('code', {}, text)),
    row('Unknown parameters', (step) => step.unknown, (text) => `are ${text}`),
    row('Behaviour', behaviourOf, (values) => values.map(([name, value]) => (
      h('div', {}, h('code', {}, name.replaceAll('_', ' ')), value === true ? null : `: ${JSON.stringify(value)}`)))))
}

// Behaviour that no schema shows: [[name, value]].
function behaviourOf({ behaviour }) {
  const there = Object.entries(behaviour ?? {}).filter(([, value]) => value !== null && value !== false)
  return there.length ? there : null
}

const rule = ({ name, rule: check, text }) => [h('code', {}, name), ' ', h('span', { class: 'quiet' }, `by default ${inWords(check)}`), text && h('div', { class: 'quiet' }, text)]

const inWords = (check) => ({ '@': 'anybody', '!': 'nobody' })[check] ?? check.replace(/^rule:/, '').replaceAll('_', ' ')

function alsoAsked(reference, numbers) {
  return h('details', {}, h('summary', {}, `${numbers.length} ${numbers.length === 1 ? 'rule' : 'rules'}, for parts of it`),
    h('ul', {}, numbers.map((number) => h('li', {}, rule(reference.policies[number])))))
}

function codes(reference, statuses, kind) {
  return statuses.map((status) => [h('span', { class: `code ${status < 400 ? 'good' : kind}` }, status, ' ', h('small', {}, reference.phrases[status])), ' '])
}

// ------------------------------------------------------------------ fields

function section(operation, part, columns, found, field) {
  const shown = found.map((step) => rows(operation.reference.nodes, step?.[part]))
  if (shown.every((each) => !each.length || (part === 'query' && !each[0].path))) return null
  const lines = merged(shown)
  const [first, last] = [found[0], found.at(-1)]
  const same = found.length > 1 && first?.[part] === last?.[part]
  const twice = found.length > 1 && !same
  return h('section', { class: 'fields' }, h('h3', {}, NAMES[part],
    same && h('small', { class: 'quiet' }, ' the same in both')),
  h('div', { class: 'scroll', tabindex: twice ? 0 : null, role: twice ? 'group' : null, 'aria-label': twice ? NAMES[part] : null },
    h('table', { class: twice ? 'twice' : null },
      h('thead', { class: twice ? null : 'hidden' }, h('tr', {}, h('th', { scope: 'col' }, 'Field'),
        (twice ? columns.map((number) => operation.reference.name(number)) : ['Type']).map((text) => h('th', { scope: 'col' }, text)),
        h('th', { scope: 'col' }, 'Versions'))),
      h('tbody', {}, lines.map((line) => tableRow(operation, part, line, twice ? found.length : 1, field))))))
}

// The fields of all columns in one order: a field that a column lacks follows the same field as in the other column.
function merged(shown) {
  const lines = []
  const place = (path) => lines.findIndex((line) => line.path === path)
  ;[...shown.keys()].reverse().forEach((column) => shown[column].forEach((row, number) => {
    let at = place(row.path)
    if (at < 0) {
      at = number ? place(shown[column][number - 1].path) + 1 : 0
      lines.splice(at, 0, { ...row, cells: shown.map(() => null) })
    }
    lines[at].cells[column] = row
  }))
  return lines
}

function tableRow(operation, part, line, width, field) {
  const { nodes } = operation.reference
  const cells = width === 1 ? [line.cells.findLast(Boolean)] : line.cells
  const texts = cells.map((cell) => cell && JSON.stringify([described(nodes, cell.nodes), cell.required]))
  const kind = width === 1 || texts[0] === texts[1] ? null : !texts[0] ? 'added' : !texts[1] ? 'removed' : 'changed'
  const here = field === `${part}${line.path}`
  return h('tr', { class: [kind, here && 'found'].filter(Boolean).join(' ') || null, id: here ? 'found' : null },
    h('th', { scope: 'row', 'data-depth': Math.min(line.depth, 6) },
      line.path ? h('code', { class: line.pattern ? 'pattern' : null }, line.pattern ? 'any name' : line.name) : h('span', { class: 'quiet' }, 'whole document'),
      line.pattern && h('small', { class: 'quiet' }, ` /${line.name}/`),
      width === 1 && cells[0].required && part !== 'response' && h('span', { class: 'required' }, 'required')),
    cells.map((cell) => h('td', {}, cell ? [value(nodes, cell), width > 1 && cell.required && part !== 'response' && h('span', { class: 'required' }, 'required')] : h('span', { class: 'quiet' }, '–'))),
    h('td', { class: 'since' }, sinceWhen(operation, part, line.path)))
}

function value(nodes, cell) {
  const { text, values } = described(nodes, cell.nodes)
  const words = values.map((each) => [h('code', { class: 'word' }, each), ' '])
  return [text, values.length > 0 && h('div', { class: 'words' }, words.slice(0, MAX_VALUES),
    words.length > MAX_VALUES && h('details', { class: 'rest' }, h('summary', {}, `${words.length - MAX_VALUES} more`), words.slice(MAX_VALUES)))]
}

function sinceWhen(operation, part, path) {
  const spans = fieldSpans(operation).get(part + path)
  return spans ? versionsInWords(operation.reference, spans, operation.lifetime) : ''
}

// The versions of each field: { 'body/server/tags': [[51, 103]] }; computed once for an operation.
export function fieldSpans(operation) {
  if (operation.spansOfFields) return operation.spansOfFields
  const holding = new Map()
  for (const step of operation.steps) {
    for (const part of PARTS) {
      for (const { path } of rows(operation.reference.nodes, step[part])) {
        const key = part + path
        if (!holding.has(key)) holding.set(key, new Set())
        holding.get(key).add(step)
      }
    }
  }
  operation.spansOfFields = new Map([...holding].map(([key, those]) => [key, operation.spans((step) => those.has(step))]))
  return operation.spansOfFields
}
