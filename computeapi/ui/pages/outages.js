// Switches for outages, and for hints about versions.

import { fill, h } from './dom.js'
import { Following } from './following.js'

const EVERY = 2000
const GIVING = [[true, 'Hints on'], [false, 'Hints off']]
const KINDS = { hosts: 'Hosts', cells: 'Cells', neighbours: 'Other services' }

export class Outages extends Following {
  constructor(cloud) {
    super(cloud, EVERY)
    this.lists = Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, h('ul', { class: 'rules switches' })]))
    this.alert = h('p', { class: 'alert', role: 'alert' })
    this.element = h('div', { class: 'two' }, this.alert, Object.entries(KINDS).map(([kind, text]) => h('section', {}, h('h3', {}, text), this.lists[kind])))
  }

  async read() {
    const all = await Promise.all(Object.keys(KINDS).map(async (kind) => [kind, (await this.cloud.getControl(`/${kind}`))[kind]]))
    const shown = JSON.stringify(all)
    if (shown === this.shown) return
    this.shown = shown
    const focused = document.activeElement?.dataset.place
    for (const [kind, those] of all) fill(this.lists[kind], those.map((each) => this.line(kind, each)))
    if (focused) this.element.querySelector(`[data-place="${CSS.escape(focused)}"]`)?.focus()
  }

  line(kind, { name, down }) {
    const turn = () => this.control('POST', `/${kind}/${encodeURIComponent(name)}/${down ? 'up' : 'down'}`)
    return h('li', { class: 'card snapshot' }, h('span', {}, h('b', {}, name), ' ', h('span', { class: `status ${down ? 'bad' : 'good'}` }, down ? 'down' : 'up')),
      h('button', { type: 'button', 'data-place': `${kind}/${name}`, 'aria-label': down ? `Bring ${name} up` : `Take ${name} down`, onclick: turn }, down ? 'Bring up' : 'Take down'))
  }
}

export class Hints extends Following {
  constructor(cloud) {
    super(cloud, EVERY)
    this.list = h('ul', { class: 'rules' })
    this.alert = h('p', { class: 'alert', role: 'alert' })
    this.turns = GIVING.map(([on, text]) => h('button', { type: 'button', onclick: () => this.control('PUT', '/hints', { on }) }, text))
    this.element = h('section', { class: 'one' }, h('h3', {}, 'Hints'), h('p', { class: 'quiet' }, 'Hints on what other versions support, in the response header Computeapi-Hint.'),
      h('div', { class: 'choices' }, this.turns), this.alert, this.list)
  }

  async read() {
    const { on, hints } = await this.cloud.getControl('/hints')
    const shown = JSON.stringify({ on, hints })
    if (shown === this.shown) return
    this.shown = shown
    GIVING.forEach(([each], place) => this.turns[place].setAttribute('aria-pressed', String(each === on)))
    fill(this.list, hints.length ? hints.map(({ times, operation, text }) => h('li', { class: 'card' }, h('p', {}, h('b', {}, operation), h('span', { class: 'quiet' }, ` ${times} ${times === 1 ? 'time' : 'times'}`)), h('p', {}, text))) : h('li', { class: 'quiet' }, 'No hints have been given yet.'))
  }
}
