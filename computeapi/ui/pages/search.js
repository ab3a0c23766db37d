// Searches operations, fields and rules, at all versions at once.

import { h } from './dom.js'
import { fieldSpans } from './operation.js'
import { method, title } from './operations.js'
import { versionsInWords } from './reference.js'

const MAX_RESULTS = 40

// link(operation, field) returns the address of a result.
export function searchResults(reference, text, link) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const matches = (name) => words.every((word) => name.includes(word))
  const operations = reference.operations.filter((operation) => matches(textOf(operation)))
  const fields = nearest(fieldsOf(reference).filter(({ text: name }) => matches(name)), words)
  const rules = reference.policies.map((rule, number) => ({ rule, number })).filter(({ rule }) => matches(rule.name))
  const none = !operations.length && !fields.length && !rules.length
  return [
    h('p', { class: 'hidden', role: 'status' }, `${operations.length} operations, ${fields.length} fields and ${rules.length} rules`),
    none && h('p', { class: 'quiet none' }, 'No operation, field or rule of any version has a matching name.'),
    section('Operations', operations, (operation) => h('a', { href: link(operation) }, method(operation), title(operation), lived(reference, operation))),
    section('Fields and parameters', fields, ({ operation, part, path, spans }) => (
      h('a', { href: link(operation, part + path) }, h('span', { class: 'path' }, h('b', {}, path.slice(1).replaceAll('/', ' › ')),
        h('small', {}, `${part} of ${operation.name}`)), h('span', { class: 'mark' }, versionsInWords(reference, spans, [[0, reference.newest]]))))),
    section('Rules', rules, ({ rule, number }) => [h('p', { class: 'rule' }, h('code', {}, rule.name)),
      h('ul', {}, askers(reference, number).map((operation) => h('li', {}, h('a', { href: link(operation) }, method(operation), title(operation)))))]),
  ]
}

// Exact matches first, then those that begin with a word.
function nearest(fields, words) {
  const rank = ({ text }) => (words.includes(text) ? 0 : words.some((word) => text.startsWith(word)) ? 1 : 2)
  return fields.map((field) => [rank(field), field]).sort(([one], [other]) => one - other).map(([, field]) => field)
}

function section(text, found, show) {
  return found.length > 0 && h('section', { class: 'group' }, h('h2', {}, `${text} `, h('span', { class: 'count' }, found.length)),
    h('ul', {}, found.slice(0, MAX_RESULTS).map((each) => h('li', {}, show(each)))),
    found.length > MAX_RESULTS && h('p', { class: 'quiet none' }, `and ${found.length - MAX_RESULTS} more: refine the search to see them`))
}

const lived = (reference, { lifetime }) => h('span', { class: 'mark' }, versionsInWords(reference, lifetime, [[0, reference.newest]]))

const askers = (reference, number) => reference.operations.filter(({ steps }) => (
  steps.some(({ policy, also }) => policy === number || also?.includes(number))))

function textOf(operation) {
  const summaries = [...new Set(operation.steps.map(({ summary }) => summary))].join(' ')
  operation.text ??= `${operation.name} ${summaries} ${operation.reference.groups[operation.group].name}`.toLowerCase()
  return operation.text
}

function fieldsOf(reference) {
  reference.fields ??= reference.operations.flatMap((operation) => [...fieldSpans(operation)].map(([key, spans]) => {
    const at = key.indexOf('/')
    const [part, path] = at < 0 ? [key, ''] : [key.slice(0, at), key.slice(at)]
    // Only the name of the field itself counts, not those that contain it.
    return { operation, part, path, spans, text: path.slice(path.lastIndexOf('/') + 1).toLowerCase() }
  })).filter(({ path }) => path)
  return reference.fields
}
