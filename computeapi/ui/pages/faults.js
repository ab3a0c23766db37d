// What is to go wrong, and how often it did.

import { fill, h } from './dom.js'
import { Following } from './following.js'

const EVERY = 2000
const EXAMPLE = { operation: 'os-start', status: 409, message: 'Not now.', count: 1 }

export class FaultRules extends Following {
  constructor(cloud) {
    super(cloud, EVERY)
    this.rules = h('ul', { class: 'rules' })
    this.body = h('textarea', { rows: 7, spellcheck: 'false', 'aria-label': 'A new rule, JSON' })
    this.body.value = JSON.stringify(EXAMPLE, null, 2)
    this.trouble = h('p', { class: 'trouble', role: 'alert' })
    this.element = h('div', { class: 'two' },
      h('section', {}, h('h3', {}, 'Rules'), this.rules),
      h('section', {}, h('h3', {}, 'A new rule'), h('form', { onsubmit: (event) => { event.preventDefault(); this.add() } }, this.body, this.trouble,
        h('div', { class: 'buttons' }, h('button', { type: 'submit', class: 'main' }, 'Add'), h('button', { type: 'button', onclick: () => this.control('DELETE', '/faults') }, 'Remove all')))))
  }

  async read() {
    this.paint((await this.cloud.getControl('/faults')).faults)
  }

  paint(faults) {
    const shown = JSON.stringify(faults)
    if (shown === this.shown) return
    this.shown = shown
    fill(this.rules, faults.length ? faults.map(({ id, hits, ...facts }) => h('li', { class: 'card' }, h('p', {}, h('b', {}, `${hits} ${hits === 1 ? 'hit' : 'hits'}`)),
      h('dl', { class: 'headers' }, Object.entries(facts).map(([name, value]) => [h('dt', {}, name), h('dd', {}, typeof value === 'string' ? value : JSON.stringify(value))])),
      h('button', { type: 'button', 'aria-label': `Remove rule ${id}`, onclick: () => this.control('DELETE', `/faults/${id}`) }, 'Remove'))) : h('li', { class: 'quiet' }, 'Nothing is to go wrong.'))
  }

  add() {
    try {
      return this.control('POST', '/faults', JSON.parse(this.body.value))
    } catch (error) {
      fill(this.trouble, `The rule is not JSON: ${error.message}`)
    }
  }
}
