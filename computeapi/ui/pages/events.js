// The events of the cloud, as they happen: changes of state, the newest first.

import { fill, h } from './dom.js'
import { Following } from './following.js'
import { LongList } from './rows.js'

const EVERY = 1000
const KEPT = 5000

export class EventList extends Following {
  constructor(cloud) {
    super(cloud, EVERY)
    this.text = h('input', { type: 'search', placeholder: 'Type, name or ID', 'aria-label': 'Filter events by type, name or ID', autocomplete: 'off', spellcheck: 'false', oninput: () => this.paint() })
    this.count = h('span', { class: 'quiet count' })
    this.alert = h('p', { class: 'alert', role: 'alert' })
    const head = h('div', { role: 'row', class: 'line event head' }, ['Event', 'Resource', 'Changes', 'Time'].map((text) => h('span', { role: 'columnheader' }, text)))
    this.list = new LongList({ height: 40, label: 'Events', head, row: (event, number) => this.row(event, number), more: () => {} })
    this.element = h('div', { class: 'journal' }, h('div', { class: 'bar' }, this.text, this.count), this.alert, this.list.element)
    Object.assign(this, { events: [], last: null })
  }

  async read() {
    const { events, last, lost } = await this.cloud.getControl('/events', { since: this.last })
    // After a reset, the list of events begins anew.
    const reset = events.findLastIndex(({ type }) => type === 'cloud.reset')
    if (reset >= 0) this.events = []
    this.events = [...events.slice(Math.max(reset, 0)).reverse(), ...this.events].slice(0, KEPT)
    if (lost) fill(this.alert, `${lost} events were dropped.`)
    if (events.length || this.last === null) this.paint()
    this.last = last
  }

  paint() {
    const text = this.text.value.trim().toLowerCase()
    const shown = this.events.filter(({ type, name, resource_id: id, server_id: server }) => [type, name, id, server].some((each) => each?.toLowerCase().includes(text)))
    fill(this.count, shown.length === 1 ? '1 event' : `${shown.length} events`)
    this.list.show(shown)
  }

  row({ type, name, resource_id: id, server_id: server, before, after, time }, number) {
    const cell = (kind, ...content) => h('span', { role: 'cell', class: kind }, content)
    const of = name || id || ''
    return h('div', { role: 'row', 'aria-rowindex': number + 2, class: 'line event' }, cell('', h('b', {}, type)),
      cell('name', server ? h('a', { href: `#/servers/${encodeURIComponent(server)}` }, of || server) : of, after?.status && h('span', { class: 'quiet' }, ` ${after.status}`)),
      cell('wide quiet', changed(before, after)), cell('wide quiet', time.slice(11, 19)))
  }
}

// 'status ACTIVE → SHUTOFF' for values that changed; for a new resource, its status.
function changed(before, after) {
  if (!after) return ''
  if (!before) return after.status ?? ''
  return Object.keys(after).map((name) => `${name.replaceAll('_', ' ')} ${shortly(before[name])} → ${shortly(after[name])}`).join(', ')
}

const shortly = (value) => (value === null || value === undefined ? '–' : String(value))
