// The journal: the requests to the cloud, as they are made.

import { keep } from './control.js'
import { fill, h } from './dom.js'
import { Following } from './following.js'
import { LongList } from './rows.js'

const EVERY = 1000
const KEPT = 5000

export class Journal extends Following {
  constructor(cloud) {
    super(cloud, EVERY)
    this.text = h('input', { type: 'search', placeholder: 'Operation or path', 'aria-label': 'Filter requests by operation or path', autocomplete: 'off', spellcheck: 'false', oninput: () => this.paint() })
    this.service = h('select', { 'aria-label': 'Service', onchange: () => this.paint() }, h('option', { value: '' }, 'Any service'))
    this.outcome = h('select', { 'aria-label': 'Response', onchange: () => this.paint() }, [['', 'Any response'], ['2', '2xx'], ['4', '4xx'], ['5', '5xx'], ['none', 'No response']].map(([value, text]) => h('option', { value }, text)))
    this.count = h('span', { class: 'quiet count' })
    this.alert = h('p', { class: 'alert', role: 'alert' })
    this.one = h('dialog', { class: 'entry', 'aria-labelledby': 'entry' })
    const head = h('div', { role: 'row', class: 'line asked head' }, ['Response', 'Request', 'Operation', 'Version', 'Duration'].map((text) => h('span', { role: 'columnheader' }, text)))
    this.list = new LongList({ height: 40, label: 'Requests', head, row: (entry, number) => this.row(entry, number), more: () => {} })
    this.element = h('div', { class: 'journal' }, h('div', { class: 'bar' }, this.text, this.service, this.outcome,
      h('button', { type: 'button', onclick: () => this.clear() }, 'Clear'),
      h('button', { type: 'button', onclick: () => this.save('journal.har', '/journal.har') }, 'Save as .har'), h('button', { type: 'button', onclick: () => this.save('journal.jsonl', '/journal.jsonl') }, '… as .jsonl'), this.count), this.alert, this.list.element, this.one)
    this.forget()
  }

  forget() {
    Object.assign(this, { entries: [], last: 0, services: new Set() })
  }

  async read() {
    const { entries } = await this.cloud.getControl('/journal', { since: this.last || null })
    this.take(entries)
  }

  take(entries) {
    if (!entries.length && this.painted) return
    this.last = entries.at(-1)?.number ?? this.last
    // The newest come first.
    this.entries = [...entries.reverse(), ...this.entries].slice(0, KEPT)
    for (const { service } of entries) {
      if (service && !this.services.has(service)) {
        this.services.add(service)
        this.service.append(h('option', {}, service))
      }
    }
    this.paint()
  }

  async save(name, path) {
    try {
      keep(name, 'application/json', await this.cloud.textOfControl(path))
    } catch (error) {
      this.fail(error)
    }
  }

  async clear() {
    if (!await this.control('DELETE', '/journal')) return
    this.entries = []
    this.paint()
  }

  paint() {
    this.painted = true
    const text = this.text.value.trim().toLowerCase()
    const outcome = this.outcome.value
    const shown = this.entries.filter(({ path, operation, service, status }) => (
      (!text || `${operation ?? ''} ${path}`.toLowerCase().includes(text)) && (!this.service.value || service === this.service.value)
      && (!outcome || (outcome === 'none' ? status === null : String(status).startsWith(outcome)))))
    fill(this.count, shown.length === 1 ? '1 request' : `${shown.length} requests`)
    this.list.show(shown)
  }

  row(entry, number) {
    const { status, method, path, operation, service, microversion_used: version, duration } = entry
    const cell = (kind, ...content) => h('span', { role: 'cell', class: kind }, content)
    return h('div', { role: 'row', 'aria-rowindex': number + 2, class: 'line asked' }, cell('', answer(status, entry.error)),
      cell('name', h('button', { type: 'button', onclick: () => this.open(entry) }, h('b', {}, method), ' ', path)),
      cell('wide quiet', operation ? operation.slice(operation.indexOf(' ') + 1) : service ?? ''), cell('wide', version ?? ''), cell('wide', `${(duration * 1000).toFixed(0)} ms`))
  }

  open(entry) {
    const part = (name, { headers, body }) => h('section', {}, h('h3', {}, name),
      h('details', {}, h('summary', {}, 'Headers'), h('dl', { class: 'headers' }, Object.entries(headers).map(([each, value]) => [h('dt', {}, each), h('dd', {}, String(value))]))),
      body !== null && h('pre', { tabindex: 0, role: 'group', 'aria-label': `${name}, body` }, typeof body === 'string' ? body : JSON.stringify(body, null, 2)))
    fill(this.one, h('h2', { id: 'entry' }, `${entry.method} ${entry.path}${entry.query ? `?${entry.query}` : ''}`),
      h('p', { class: 'quiet' }, answer(entry.status, entry.error), ` ${entry.time.replace('T', ' ')}${entry.operation ? `, ${entry.operation}` : ''}`),
      part('Request', entry.request), part('Response', entry.response),
      h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'main', onclick: () => this.one.close() }, 'Close')))
    this.one.showModal()
  }
}

function answer(status, error) {
  return h('span', { class: `status ${status === null || status >= 500 ? 'bad' : status >= 400 ? 'busy' : 'good'}` }, status ?? error ?? 'none')
}
