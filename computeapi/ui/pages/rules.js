// Fault rules, plans for states, and webhooks, which are active until they are removed.

import { fill, h } from './dom.js'
import { ControlForm, propertyList } from './control.js'
import { Following } from './following.js'

const EVERY = 2000

// name: of the list in the control API.  title, one, none: texts.  example: a document for a new one. head(rule): the
// headline, and the rest of the rule.  shownOf(answer): what to show about a new one.
export class RulesView extends Following {
  constructor(cloud, { name, title, one, none, example, head, shownOf, more }) {
    super(cloud, EVERY)
    Object.assign(this, { name, none, head, one })
    this.list = h('ul', { class: 'rules' })
    this.alert = h('p', { class: 'alert', role: 'alert' })
    this.result = h('div', { role: 'status' })
    this.form = new ControlForm(cloud, `/${name}`, { text: `Add ${one}`, example, send: async (document) => {
      const answer = await cloud.sendControl('POST', `/${name}`, document)
      fill(this.result, shownOf?.(answer))
      this.followNow()
    } })
    this.element = h('div', { class: 'two' },
      h('section', {}, h('h3', {}, title), this.list, h('div', { class: 'buttons' }, more?.(this), h('button', { type: 'button', onclick: () => this.control('DELETE', `/${name}`) }, 'Remove all')), this.alert),
      h('section', {}, h('h3', {}, `A new ${one.replace(/^\w+ /, '')}`), this.form.element, this.result))
  }

  show() {
    super.show()
    this.form.show().catch((error) => this.fail(error))
  }

  async read() {
    const { [this.name]: rules } = await this.cloud.getControl(`/${this.name}`)
    const shown = JSON.stringify(rules)
    if (shown === this.shown) return
    this.shown = shown
    fill(this.list, rules.length ? rules.map((rule) => this.card(rule)) : h('li', { class: 'quiet' }, this.none))
  }

  card({ id, ...rule }) {
    const { text, rest } = this.head(rule)
    return h('li', { class: 'card' }, h('p', {}, h('b', {}, text)), propertyList(rest),
      h('button', { type: 'button', 'aria-label': `Remove ${this.one.replace(/^\w+ /, '')} ${id}`, onclick: () => this.control('DELETE', `/${this.name}/${id}`) }, 'Remove'))
  }
}

const counted = (number, one) => `${number} ${number === 1 ? one : `${one}s`}`

export const faultRules = (cloud) => new RulesView(cloud, {
  name: 'faults', title: 'Rules', one: 'a rule', none: 'There are no rules.', example: { operation: 'os-start', status: 409, message: 'Not now.', count: 1 },
  head: ({ hits, ...rest }) => ({ text: counted(hits, 'hit'), rest }),
})

export const statePlans = (cloud) => new RulesView(cloud, {
  name: 'plans', title: 'Plans', one: 'a plan', none: 'There are no plans.', example: { state: 'BUILD', reads: 2 },
  head: ({ state, operation, ...rest }) => ({ text: state ?? operation, rest }),
  more: (view) => releasing(view),
})

// Releases servers that a plan holds.
function releasing(view) {
  const server = h('input', { type: 'text', placeholder: 'Name or ID (all)', 'aria-label': 'The server to release', autocomplete: 'off', spellcheck: 'false' })
  return [server, h('button', { type: 'button', onclick: () => view.control('POST', '/plans/release', server.value ? { server: server.value } : {}) }, 'Release')]
}

export const webhooks = (cloud) => new RulesView(cloud, {
  name: 'webhooks', title: 'Webhooks', one: 'a webhook', none: 'There are no webhooks.', example: { url: `${location.protocol}//${location.hostname}:9000/events`, types: ['server'] },
  head: ({ url, deliveries, failures, given_up: lost, ...rest }) => ({ text: `${url}: ${deliveries} delivered, ${failures} failed, ${lost} given up`, rest }),
  shownOf: ({ secret }) => [h('p', {}, 'Its secret, which is shown only now:'), h('pre', { tabindex: 0, role: 'group', 'aria-label': 'Secret' }, secret)],
})
