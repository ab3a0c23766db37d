// Forms to try operations, and the same requests as code.

import { fill, h } from './dom.js'
import { BodyEditor } from './body.js'
import { least } from './samples.js'
import { rows } from './schemas.js'
import { shell, snippets } from './snippets.js'

// A form for an operation. It is kept while it is about the same operation, so that no input is lost.
export class Trial {
  constructor(operation, session, logIn) {
    Object.assign(this, { operation, session, logIn })
    const names = [...operation.path.matchAll(/{(\w+)}/g)].map(([, name]) => name)
    this.inPath = names.map((name) => ({ name, input: field(name, true) }))
    this.fields = h('div', { class: 'inputs' })
    this.answer = h('div', { class: 'answer', 'aria-live': 'polite' })
    this.copies = h('div', { class: 'copies' })
    this.editor = new BodyEditor(() => this.copy())
    this.body = this.editor.text
    this.alert = this.editor.alert
    this.send = h('button', { type: 'submit', class: 'main' }, 'Send')
    this.element = h('section', { class: 'trial' }, h('h3', {}, 'Try it'), this.inside = h('div', {}))
    this.chosen = 'curl'
  }

  // Fill path parameters with values of the same name.
  give(parameters) {
    for (const { name, input } of this.inPath) if (parameters.has(name)) input.value = parameters.get(name)
  }

  show(version, step) {
    const body = step.body === undefined ? undefined : JSON.stringify(least(this.nodes, step.body), null, 2)
    // Keep the user's input, but not what the schema of another version proposed.
    if (this.body.value === (this.proposed ?? '')) this.body.value = body ?? ''
    const same = this.step === step
    Object.assign(this, { version, step, proposed: body })
    if (!same) this.inQuery = rows(this.nodes, step.query).filter(({ path, pattern }) => path && !pattern).map(({ name, required }) => ({ name, input: field(name, required) }))
    this.render()
  }

  get nodes() {
    return this.operation.reference.nodes
  }

  render() {
    if (!this.step) return
    if (!this.session.who) {
      fill(this.inside, h('button', { type: 'button', onclick: this.logIn }, 'Log in to try it'))
      return
    }
    const labelled = ({ name, input }) => h('label', {}, h('code', {}, name), input)
    const { inPath, inQuery, step } = this
    const listed = inQuery.length > 4 && !inQuery.some(({ input }) => input.required)
    fill(this.inside, h('form', { onsubmit: (event) => { event.preventDefault(); this.ask() }, oninput: () => this.copy() },
      inPath.length > 0 && h('div', { class: 'inputs' }, inPath.map(labelled)),
      inQuery.length > 0 && (listed
        ? h('details', {}, h('summary', {}, `${inQuery.length} query parameters`), h('div', { class: 'inputs' }, inQuery.map(labelled)))
        : h('div', { class: 'inputs' }, inQuery.map(labelled))),
      step.body !== undefined && this.editor.element,
      this.alert, h('div', { class: 'buttons' }, this.send, h('span', { class: 'quiet' }, `at ${this.version}, as ${this.session.who.user}`))),
    this.answer, h('details', { class: 'take' }, h('summary', {}, 'Copy as …'), this.copies))
    if (step.body !== undefined) this.editor.show(this.nodes, step.body, this.body.value)
    this.copy()
  }

  get path() {
    const inside = this.operation.path.replaceAll(/{(\w+)}/g, (all, name) => (
      encodeURIComponent(this.inPath.find((each) => each.name === name).input.value) || all))
    const query = new URLSearchParams(this.inQuery.filter(({ input }) => input.value !== '').map(({ name, input }) => [name, input.value]))
    return inside + (query.size ? `?${query}` : '')
  }

  async ask() {
    const document = this.step.body === undefined ? {} : this.editor.parsed()
    if (!document) return
    this.editor.forgive()
    this.send.disabled = true
    try {
      const { method } = this.operation
      const body = this.step.body === undefined ? undefined : JSON.stringify(document.value)
      this.showAnswer(await this.session.ask(`/v2.1${this.path}`, { method, version: this.version, body }))
    } catch (error) {
      fill(this.alert, `No response: ${error.message}`)
    } finally {
      this.send.disabled = false
    }
  }

  showAnswer({ status, headers, text, milliseconds }) {
    if (status === 400 && this.step.body !== undefined && text.startsWith('{')) this.editor.refuse(Object.values(JSON.parse(text))[0].message)
    const phrase = this.operation.reference.phrases[status] ?? ''
    fill(this.answer, h('p', {}, h('span', { class: `code ${status < 400 ? 'good' : 'wrong'}` }, status, ' ', h('small', {}, phrase)),
      ' ', h('span', { class: 'quiet' }, `${milliseconds.toFixed(0)} ms`)),
    h('details', {}, h('summary', {}, 'Headers'), h('dl', { class: 'headers' }, headers.map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]))),
    text && h('pre', { tabindex: 0, role: 'group', 'aria-label': 'Response body' }, pretty(text)))
  }

  copy() {
    let body
    try {
      body = this.step.body === undefined ? undefined : JSON.parse(this.body.value)
    } catch {
      fill(this.copies, h('p', { class: 'quiet' }, 'The body is not JSON yet.'))
      return
    }
    const { method } = this.operation
    const all = snippets({ method, path: this.path, version: this.version, body, statuses: this.step.statuses, answers: this.step.response !== undefined, cloud: this.session.who.cloud, command: this.command }, location.origin)
    const shown = all.find(({ name }) => name === this.chosen) ?? all[0]
    const code = h('pre', { tabindex: 0, role: 'group', 'aria-label': shown.name }, shown.text)
    fill(this.copies, h('div', { class: 'choices' }, all.map(({ name }) => h('button', {
      type: 'button', 'aria-pressed': String(name === shown.name), onclick: () => { this.chosen = name; this.copy() },
    }, name)), h('button', { type: 'button', class: 'copy', onclick: (event) => copied(event.currentTarget, shown.text) }, 'Copy')), code)
  }

  // The command with the IDs in the form; null if there is none.
  get command() {
    const { command } = this.operation
    const written = (name) => this.inPath.find((each) => each.name === name)?.input.value
    return command?.replaceAll(/{(\w+)}/g, (all, name) => (written(name) ? shell(written(name)) : all)) ?? null
  }
}

const field = (name, required) => h('input', { type: 'text', name, required, autocomplete: 'off', spellcheck: 'false', autocapitalize: 'none' })

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

async function copied(button, text) {
  try {
    await navigator.clipboard.writeText(text)
    fill(button, 'Copied')
  } catch {
    fill(button, 'Select the text')
  }
  setTimeout(() => fill(button, 'Copy'), 1500)
}
