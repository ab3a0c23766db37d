// What a version changed, or all versions between two: by operation, and by field.

import { differences } from './differences.js'
import { h } from './dom.js'
import { method, title } from './operations.js'

const KINDS = [['added', 'New'], ['changed', 'Changed'], ['removed', 'Removed']]
const SIGNS = { '+': 'added', '-': 'removed', '~': 'changed' }
const SAID = { '+': 'new: ', '-': 'removed: ', '~': 'changed: ' }
const MAX_FIELDS = 12

export function changes(reference, state, link) {
  const { version, other } = state
  if (version === 0 && other === null) return beginning(reference, state)
  const from = other === null ? version - 1 : Math.min(version, other)
  const to = other === null ? version : Math.max(version, other)
  const found = differences(reference, from, to)
  const heading = other === null
    ? `What ${reference.name(to)} changed`
    : `From ${reference.name(from)} to ${reference.name(to)}`
  return h('article', { class: 'changes' }, h('h2', {}, heading),
    from === to ? h('p', {}, 'These are the same version.') : [
      other !== null && stories(reference, from, to),
      found.length ? KINDS.map(([kind, text]) => section(text, found.filter((each) => each.kind === kind), link))
        : h('p', { class: 'quiet' }, 'No operation differs; the sentence above describes the change.'),
    ])
}

function beginning(reference, { version }) {
  const there = reference.operations.filter((operation) => operation.at(version))
  return h('article', { class: 'changes' }, h('h2', {}, `The first version, ${reference.name(0)}`),
    h('p', {}, `${there.length} operations of ${new Set(there.map(({ group }) => group)).size} resources. `,
      'Each later version changes some of them. Move the slider to see which, and choose an operation to see its requests and responses.'))
}

function stories(reference, from, to) {
  const between = reference.versions.slice(from + 1, to + 1)
  return h('details', { class: 'stories' }, h('summary', {}, `${between.length} ${between.length === 1 ? 'version' : 'versions'}`),
    h('dl', {}, between.map(({ name, story }) => [h('dt', {}, name), h('dd', {}, story)])))
}

function section(text, found, link) {
  return found.length > 0 && h('section', {}, h('h3', {}, `${text} `, h('span', { class: 'count' }, found.length)),
    h('ul', { class: 'touched' }, found.map(({ operation, what }) => h('li', {},
      h('a', { href: link(operation) }, method(operation), title(operation)),
      Object.entries(what).map(([part, details]) => h('p', { class: 'part' }, h('span', { class: 'label' }, part), ' ', listed(details)))))))
}

function listed(details) {
  const shown = details.slice(0, MAX_FIELDS).map(detail)
  const rest = details.slice(MAX_FIELDS)
  return [shown, rest.length > 0 && h('details', { class: 'rest' }, h('summary', {}, `${rest.length} more`), rest.map(detail))]
}

function detail(text) {
  const kind = SIGNS[text[0]]
  if (!kind) return h('span', { class: 'plain' }, text.replaceAll('_', ' '))
  return h('code', { class: `sign ${kind}` }, h('span', { class: 'hidden' }, SAID[text[0]]),
    h('span', { 'aria-hidden': 'true' }, { '+': '+', '-': '−', '~': '~' }[text[0]]), ` ${text.slice(2).replaceAll('/', ' › ') || 'whole document'}`)
}
