// The view of the API: versions at the top, operations on the left, and one of them, or the changes, on the right.

import { changes } from './changes.js'
import { fill, h } from './dom.js'
import { operationView } from './operation.js'
import { operationList } from './operations.js'
import { Operation, Reference } from './reference.js'
import { searchResults } from './search.js'
import { Trial } from './trial.js'
import { VersionBar } from './versions.js'

export class APIView {
  static async load(session, logIn) {
    const answer = await fetch('reference.json')
    if (!answer.ok) throw new Error(`The reference cannot be loaded: ${answer.status}`)
    return new APIView(new Reference(await answer.json()), session, logIn)
  }

  constructor(reference, session, logIn) {
    Object.assign(this, { reference, session, logIn })
    this.bar = new VersionBar(reference, {
      choose: (version) => this.go({ version }), compare: (other) => this.go({ other }),
    })
    this.query = h('input', {
      type: 'search', id: 'query', placeholder: 'Operations, fields, rules', 'aria-label': 'Search operations, fields and rules',
      autocomplete: 'off', spellcheck: 'false', oninput: () => this.go({ query: this.query.value }),
    })
    this.all = h('button', {
      type: 'button', class: 'all', 'aria-expanded': 'false', onclick: () => this.listAll(!this.element.classList.contains('listed')),
    }, 'All operations')
    this.list = h('nav', { class: 'list', 'aria-label': 'Operations', tabindex: -1 })
    this.detail = h('div', { class: 'detail', tabindex: -1 })
    this.element = h('div', { class: 'api' }, this.bar.element,
      h('div', { class: 'panes' }, h('div', { class: 'side' }, h('div', { class: 'find' }, this.query, this.all), this.list), this.detail))
    this.state = {}
    this.forget()
  }

  // Drop the forms of the previous user, with the input and the responses.
  forget() {
    this.trials = new Map()
  }

  // The state in an address. A version that is not offered is replaced by the newest.
  read(parameters) {
    const { reference } = this
    return {
      version: reference.number(parameters.get('v')) ?? reference.newest,
      other: reference.number(parameters.get('with')),
      operation: reference.byName.get(parameters.get('op')) ?? null,
      field: parameters.get('field'),
      query: parameters.get('q') ?? '',
      // Initial values of path parameters: a link from a server contains its ID.
      given: parameters,
    }
  }

  address(change) {
    const { version, other, operation, field, query } = { ...this.state, ...change }
    const parameters = new URLSearchParams({ v: this.reference.name(version) })
    if (other !== null) parameters.set('with', this.reference.name(other))
    if (operation) parameters.set('op', operation.name)
    if (operation && field) parameters.set('field', field)
    if (query) parameters.set('q', query)
    return `#/api?${parameters}`
  }

  // Go to another state. The address follows, without an entry in the browser's history.
  go(change) {
    history.replaceState(null, '', this.address(change))
    this.coming ??= requestAnimationFrame(() => {
      this.coming = null
      this.showState(this.read(new URLSearchParams(location.hash.split('?')[1])))
    })
    // Two changes before the next frame must not undo each other.
    this.state = { ...this.state, ...change }
  }

  show(place, parameters) {
    this.showState(this.read(parameters))
  }

  hide() {
  }

  showState(state) {
    const before = this.shown
    this.state = this.shown = state
    this.bar.show(state)
    if (this.query.value !== state.query) this.query.value = state.query
    this.showList(state)
    fill(this.detail, state.operation && h('a', { class: 'back', href: this.address({ operation: null, field: null }) }, this.backText(state)),
      state.operation
        ? operationView(this.reference, state, (version) => this.address({ version }), this.trial(state))
        : changes(this.reference, state, (operation) => this.address({ operation, field: null })))
    this.element.classList.toggle('chosen', Boolean(state.operation))
    document.title = `${state.operation ? `${state.operation.name} – ` : ''}${this.reference.name(state.version)} – computeapi`
    if (state.operation) this.listAll(false)
    if (before && (before.operation !== state.operation || before.field !== state.field)) this.turnTo(state)
  }

  // In a narrow window, the list is only shown on request.
  listAll(listed) {
    this.element.classList.toggle('listed', listed)
    this.all.setAttribute('aria-expanded', String(listed))
  }

  showList(state) {
    const searching = state.query.trim()
    this.element.classList.toggle('searching', Boolean(searching))
    const link = (operation, field = null) => this.address({ operation, field })
    fill(this.list, searching
      ? searchResults(this.reference, searching, link)
      : operationList(this.reference, state, link))
  }

  // The form for an operation, which is kept when the slider moves.
  trial({ operation, version, other, given }) {
    const step = operation.at(version)
    if (!this.session.offered || !step || other !== null || Operation.isGone(step) || operation.path === '/' || operation.path.startsWith('/versions')) return null
    const trial = this.trials.get(operation) ?? new Trial(operation, this.session, this.logIn)
    this.trials.set(operation, trial)
    trial.give(given)
    trial.show(this.reference.name(version), step)
    return trial.element
  }

  backText({ version, other }) {
    return other === null ? `What ${this.reference.name(version)} changed` : 'What differs'
  }

  // Move the focus to what was chosen, so that reading continues there, also with a screen reader.
  turnTo(state) {
    this.detail.scrollTo(0, 0)
    const found = this.detail.querySelector('#found')
    if (found) found.scrollIntoView({ block: 'center' })
    else if (state.operation) this.detail.scrollIntoView({ block: 'nearest' })
    this.detail.focus({ preventScroll: true })
  }
}
