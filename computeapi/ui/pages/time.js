// The clock of the cloud, and its snapshots.

import { fill, h } from './dom.js'
import { Following } from './following.js'

const EVERY = 1000
// The snapshot that a reset restores.
const INITIAL = 'initial'
const STEPS = [[60, '1 minute later'], [3600, '1 hour later'], [86400, '1 day later']]
const RATES = [[0, 'stopped'], [1, 'normal speed'], [60, '60 times as fast']]

export class TimeAndSnapshots extends Following {
  constructor(cloud) {
    super(cloud, EVERY)
    this.now = h('output', { class: 'number now' })
    this.rates = h('div', { class: 'choices' })
    this.name = h('input', { type: 'text', required: true, maxlength: 60, 'aria-label': 'Name of a new snapshot', placeholder: 'Name', autocomplete: 'off' })
    this.snapshots = h('ul', { class: 'rules' })
    this.alert = h('p', { class: 'alert', role: 'alert' })
    const step = ([seconds, text]) => h('button', { type: 'button', onclick: () => this.control('POST', '/clock/step', { seconds }) }, text)
    this.element = h('div', { class: 'two' },
      h('section', {}, h('h3', {}, 'The clock'), this.now, this.rates, h('div', { class: 'choices' }, STEPS.map(step), h('button', { type: 'button', onclick: () => this.control('DELETE', '/clock') }, 'Real time'))),
      h('section', {}, h('h3', {}, 'Snapshots'), h('form', { class: 'bar', onsubmit: (event) => { event.preventDefault(); this.takeSnapshot() } }, this.name, h('button', { type: 'submit' }, 'Take snapshot')),
        this.snapshots, h('button', { type: 'button', class: 'final', onclick: () => this.controlAll('POST', '/reset') }, 'Reset the cloud'),
        h('p', { class: 'quiet' }, 'A reset restores the initial state, and deletes the other snapshots, the journal and all rules. A reset or restore also ends your session, which the restored state does not contain.')), this.alert)
  }

  async read() {
    const [{ now, rate }, { snapshots }] = await Promise.all([this.cloud.getControl('/clock'), this.cloud.getControl('/snapshots')])
    fill(this.now, now.replace('T', ' ').replace(/\..*/, ''), ' ', h('small', {}, 'UTC'))
    this.paint(rate, snapshots)
  }

  paint(rate, snapshots) {
    const shown = JSON.stringify([rate, snapshots])
    if (shown === this.shown) return
    this.shown = shown
    fill(this.rates, RATES.map(([each, text]) => h('button', { type: 'button', 'aria-pressed': String(each === rate), onclick: () => this.control('PUT', '/clock', { rate: each }) }, text)))
    fill(this.snapshots, snapshots.map(({ name }) => h('li', { class: 'card snapshot' }, h('b', {}, name), h('div', { class: 'buttons' },
      h('button', { type: 'button', 'aria-label': `Restore ${name}`, onclick: () => this.controlAll('POST', `/snapshots/${encodeURIComponent(name)}/restore`) }, 'Restore'),
      name !== INITIAL && h('button', { type: 'button', 'aria-label': `Delete ${name}`, onclick: () => this.control('DELETE', `/snapshots/${encodeURIComponent(name)}`) }, 'Delete')))))
  }

  async takeSnapshot() {
    if (await this.control('POST', '/snapshots', { name: this.name.value })) this.name.value = ''
  }

}
