// The operations of a version, by resource, as a list to choose from.

import { h } from './dom.js'
import { difference } from './differences.js'
import { Operation } from './reference.js'

const MARKS = { added: 'new', removed: 'gone', changed: 'changed' }

// link(operation) returns its address.  state: { version, other, operation }.
export function operationList(reference, state, link) {
  const groups = reference.groups.map((group) => ({ group, shown: group.operations.filter((each) => isShown(each, state)) }))
  return groups.filter(({ shown }) => shown.length).map(({ group, shown }) => (
    h('section', { class: 'group' }, h('h2', {}, group.name),
      h('ul', {}, shown.map((operation) => h('li', {}, entry(operation, state, link)))))))
}

const isShown = (operation, { version, other }) => operation.at(version) || (other !== null && operation.at(other))

function entry(operation, state, link) {
  const { version, other } = state
  const step = operation.at(version)
  const mark = markOf(operation, version, other)
  return h('a', {
    href: link(operation), 'aria-current': state.operation === operation ? 'true' : null,
    class: step && !Operation.isGone(step) ? null : 'dim',
  }, method(operation), title(operation), mark && h('span', { class: `mark ${mark}` }, MARKS[mark]),
  step && Operation.isGone(step) && h('span', { class: 'mark gone' }, step.statuses[0]))
}

export const method = ({ method: name }) => h('span', { class: `method ${name.toLowerCase()}` }, name)

// The path, or the action with its path; it may wrap at slashes.
export function title({ path, action }) {
  const parts = path.split('/').slice(1).map((part) => [h('wbr'), '/', part.startsWith('{') ? h('i', {}, part) : part])
  return action
    ? h('span', { class: 'path' }, h('b', {}, action), h('small', {}, parts))
    : h('span', { class: 'path' }, parts)
}

// How the operation changed, since the other version or else since the previous one.
export function markOf(operation, version, other) {
  if (other === null && !operation.touchedAt(version)) return null
  const from = other === null ? version - 1 : Math.min(version, other)
  const to = other === null ? version : Math.max(version, other)
  return difference(operation, from, to)?.kind ?? null
}
