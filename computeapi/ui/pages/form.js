// A form for a document, generated from its schema. What is too free for fields is edited as JSON.

import { fill, h } from './dom.js'
import { alternatives, fits, fromText, typeOf } from './kinds.js'
import { least } from './samples.js'
import { described } from './schemas.js'

const NAMES = { array: 'a list', object: 'fields', null: 'null', json: 'JSON', choice: 'one of', scalar: 'a value' }

export class BodyForm {
  // changed() is called when the value has changed.
  constructor(nodes, changed) {
    Object.assign(this, { nodes, changed })
    this.element = h('div', { class: 'body-form' })
  }

  // Edit this value from now on, in place.
  show(number, value) {
    this.value = value
    this.marked = null
    fill(this.element, this.field({ number, value, name: '', put: (next) => { this.value = next }, needed: true }))
  }

  // A field. put(value) stores a new value. remove: removes the field, if that is possible.
  field(field) {
    const kinds = alternatives(this.nodes, field.number)
    const kind = kinds.find((each) => fits(each, field.value)) ?? { type: 'json', number: field.number }
    const place = h('div', { class: 'field', 'data-name': field.name || null })
    fill(place, this.inside(place, field, kind, kinds))
    return place
  }

  inside(place, field, kind, kinds) {
    const again = (value) => {
      field.put(value)
      this.changed()
      const next = this.field({ ...field, value })
      place.replaceWith(next)
      next.querySelector('input, select, textarea, button')?.focus()
    }
    const other = kinds.length > 1 && this.kindChooser(field, kind, kinds, again)
    const made = { object: this.object, array: this.list, null: this.nothing, choice: this.choice, scalar: this.scalar, json: this.free }[kind.type]
    return made.call(this, field, kind, { other, again, away: field.remove && this.away(field) })
  }

  // The choice between the alternatives of a field.
  kindChooser({ name }, kind, kinds, again) {
    const chooser = h('select', { class: 'kind', 'aria-label': `Type of ${name}`, onchange: () => again(this.first(kinds[chooser.value])) },
      kinds.map((each, at) => h('option', { value: at, selected: each === kind }, NAMES[each.type])), !kinds.includes(kind) && h('option', { value: '', selected: true }, 'JSON'))
    return chooser
  }

  first({ type, number, values }) {
    if (type === 'null') return null
    if (type === 'choice') return values[0]
    if (type === 'scalar') return ''
    const value = least(this.nodes, number)
    return typeOf(value) === type ? value : { array: [], object: {}, json: null }[type]
  }

  away({ name, remove }) {
    return h('button', { type: 'button', class: 'away', 'aria-label': `Remove ${name}`, title: 'Remove', onclick: remove }, '×')
  }

  // ------------------------------------------------------------------ fields that contain others

  group({ name, needed }, other, away, ...content) {
    if (!name) return content
    return h('fieldset', {}, h('legend', {}, h('code', {}, name), needed && mark()), h('div', { class: 'tools' }, other, away), content)
  }

  object(field, kind, { other, away, again }) {
    const node = this.nodes[kind.number]
    const { value, name } = field
    const of = (each) => own(node.properties, each) ?? Object.entries(node.patternProperties ?? {}).find(([pattern]) => new RegExp(pattern).test(each))?.[1] ?? node.additionalProperties?.node
    const required = new Set(node.required)
    const part = (each) => {
      const known = of(each)
      const made = this.field({
        number: known, value: value[each], name: each, needed: required.has(each), unknown: known === undefined,
        put: (next) => { value[each] = next }, remove: required.has(each) ? null : () => { delete value[each]; again(value) },
      })
      return made
    }
    const absent = Object.keys(node.properties ?? {}).filter((each) => !Object.hasOwn(value, each))
    const parts = h('div', { class: 'parts-of' }, Object.keys(value).map(part))
    return this.group(field, other, away, parts, this.adders(name, value, absent, node, again, (each) => {
      value[each] = this.firstOf(of(each))
      this.changed()
      const made = part(each)
      parts.append(made)
      made.querySelector('input, select, textarea, button')?.focus()
    }))
  }

  firstOf(number) {
    return number === undefined ? '' : this.first(alternatives(this.nodes, number)[0])
  }

  adders(name, value, absent, node, again, add) {
    const chooser = absent.length > 0 && h('select', {
      'aria-label': `Add a field to ${name || 'the body'}`, onchange: () => { const { value: chosen } = chooser; chooser.querySelector(`option[value="${CSS.escape(chosen)}"]`).remove(); chooser.value = ''; add(chosen) },
    }, h('option', { value: '' }, 'Add a field …'), absent.map((each) => h('option', { value: each }, each)))
    const free = node.patternProperties || node.additionalProperties?.node !== undefined
    const key = free && h('input', { type: 'text', 'aria-label': `New name in ${name || 'the body'}`, placeholder: 'Name', autocomplete: 'off', spellcheck: 'false', autocapitalize: 'none', onkeydown: (event) => { if (event.key === 'Enter') { event.preventDefault(); named() } } })
    const named = () => {
      const given = key.value
      if (!given || Object.hasOwn(value, given)) return key.focus()
      key.value = ''
      add(given)
    }
    return (chooser || key) && h('div', { class: 'adders' }, chooser, key && [key, h('button', { type: 'button', 'aria-label': `Add a name to ${name || 'the body'}`, onclick: named }, 'Add')])
  }

  list(field, kind, { other, away, again }) {
    const { value, name } = field
    const items = this.nodes[kind.number].items?.node
    const item = (each, at) => this.field({
      number: items, value: each, name: `${name} ${at + 1}`, put: (next) => { value[at] = next }, remove: () => { value.splice(at, 1); again(value) },
    })
    const add = () => {
      const [first] = items === undefined ? [{ type: 'json' }] : alternatives(this.nodes, items)
      value.push(this.first(first))
      this.changed()
      const made = item(value.at(-1), value.length - 1)
      parts.append(made)
      made.querySelector('input, select, textarea, button')?.focus()
    }
    const parts = h('div', { class: 'parts-of' }, value.map(item))
    return this.group(field, other, away, parts, h('div', { class: 'adders' }, h('button', { type: 'button', onclick: add, 'aria-label': `Add an item to ${name}` }, 'Add an item')))
  }

  // ------------------------------------------------------------------ fields to fill in

  labelled({ name, number, needed, unknown }, other, away, input, text) {
    const facts = unknown ? 'not supported in this version' : text ?? this.said(number)
    const label = h('label', {}, h('span', { class: 'named' }, h('code', {}, name || 'the body'), needed && mark()), input)
    input.dataset.name = name.split(' ')[0]
    return [h('div', { class: 'line-of' }, label, other, away), facts && h('p', { class: 'hint quiet' }, facts)]
  }

  said(number) {
    return number === undefined ? 'anything' : [described(this.nodes, [number]).text, this.nodes[number].description].filter(Boolean).join(': ')
  }

  scalar(field, kind, { other, away }) {
    const { value, needed, put } = field
    const only = kind.types.every((type) => type === 'integer') ? 'numeric' : null
    const input = h('input', {
      type: 'text', inputmode: only, value, required: needed, autocomplete: 'off', spellcheck: 'false', autocapitalize: 'none',
      oninput: () => { put(fromText(kind.types, input.value)); this.unmark(input); this.changed() },
    })
    return this.labelled(field, other, away, input)
  }

  choice(field, kind, { other, away }) {
    const { value, put } = field
    const at = kind.values.findIndex((each) => each === value)
    const input = h('select', { onchange: () => { put(kind.values[input.value]); this.unmark(input); this.changed() } },
      kind.values.map((each, number) => h('option', { value: number, selected: number === at }, String(each))))
    return this.labelled(field, other, away, input, this.nodes[field.number]?.description ?? '')
  }

  nothing(field, kind, { other, away }) {
    return this.labelled(field, other, away, h('input', { type: 'text', value: 'null', readonly: true }), 'nothing')
  }

  free(field, kind, { other, away }) {
    const { value, put, name } = field
    const input = h('textarea', {
      rows: Math.min(12, JSON.stringify(value, null, 2).split('\n').length + 1), spellcheck: 'false', autocomplete: 'off', oninput: () => {
        try {
          put(JSON.parse(input.value))
          input.setCustomValidity('')
          this.changed()
        } catch (error) {
          input.setCustomValidity(`${name} is not JSON: ${error.message}`)
        }
      },
    })
    input.value = JSON.stringify(value, null, 2)
    return this.labelled(field, other, away, input)
  }

  // ------------------------------------------------------------------ errors

  // Show an error at the field with this name; returns whether there is one.
  mark(name, message) {
    const input = [...this.element.querySelectorAll('[data-name]')].filter((each) => each.dataset.name === name).flatMap((each) => (each.matches('input, select, textarea') ? each : [...each.querySelectorAll('input, select, textarea')].slice(0, 1)))[0]
    if (!input) return false
    const alert = h('p', { class: 'alert', id: 'refused', role: 'alert' }, message)
    input.setAttribute('aria-invalid', 'true')
    input.setAttribute('aria-describedby', 'refused')
    input.closest('.field').append(alert)
    this.marked = { input, alert }
    input.focus()
    return true
  }

  unmark(input) {
    if (!this.marked || (input && input !== this.marked.input)) return
    this.marked.input.removeAttribute('aria-invalid')
    this.marked.input.removeAttribute('aria-describedby')
    this.marked.alert.remove()
    this.marked = null
  }
}

// A property of the object itself, not one that every object has.
const own = (things, name) => (Object.hasOwn(things ?? {}, name) ? things[name] : undefined)

const mark = () => h('span', { class: 'needed' }, ' required')
