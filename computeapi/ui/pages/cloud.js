// The cloud's responses to the logged-in user, as documents.

import { ChangeStream } from './change_stream.js'

export class CloudError extends Error {
  constructor(message, status) {
    super(message)
    this.status = status
  }
}

export class Cloud {
  // newest: the version that is requested by default.
  constructor(session, reference) {
    Object.assign(this, { session, reference, newest: reference.name(reference.newest), changes: new ChangeStream(session) })
  }

  // The document at a path. Throws CloudError with the error message. query: an object; null and '' are left out, a list is given several times.
  async get(path, query = {}, version = this.newest) {
    return this.taken(await this.session.ask(path + queryString(query), { version, look: true }))
  }

  async send(method, path, document, version = this.newest) {
    const body = document === undefined ? undefined : JSON.stringify(document)
    return this.taken(await this.session.ask(path, { method, version, body }))
  }

  taken({ status, text }) {
    const document = text.startsWith('{') ? JSON.parse(text) : null
    if (status < 400) return document
    const [fault] = Object.values(document ?? {})
    // Errors of the page's own server have no envelope.
    throw new CloudError(fault?.message ?? document?.message ?? `The cloud responded with ${status}.`, status)
  }

  // The same for the control API.
  async getControl(path, query = {}) {
    return this.taken(await this.session.ask(path + queryString(query), { at: 'control' }))
  }

  // A response as text, such as a file.
  async textOfControl(path) {
    const { status, text } = await this.session.ask(path, { at: 'control' })
    if (status >= 400) this.taken({ status, text })
    return text
  }

  async sendControl(method, path, document) {
    const body = document === undefined ? undefined : JSON.stringify(document)
    return this.taken(await this.session.ask(path, { method, body, at: 'control' }))
  }

  // The last version that shows something, or the newest one if that is not offered.
  until(name) {
    const number = this.reference.number(name)
    return number === null ? this.newest : name
  }

  // The policy rule that refuses an operation to the user, in their own project or according to `rights`; or null.
  ruleAgainst(name, rights = this.session.who) {
    const step = this.reference.byName.get(name)?.at(this.reference.newest)
    if (!step || step.policy === undefined) return null
    const rule = this.reference.policies[step.policy].name
    return rights?.refused.includes(rule) ? rule : null
  }

  // What the policy rules allow the user for resources of another user and project: { refused, all, admin }.
  async rightsFor(project, user) {
    return this.taken(await this.session.ask(`?${new URLSearchParams({ project_id: project, user_id: user })}`, { at: 'rules' }))
  }

  // Whether the user may see the servers of all projects.
  get seesAll() {
    return Boolean(this.session.who?.all)
  }
}

function queryString(query) {
  const given = Object.entries(query).flatMap(([name, value]) => [value].flat().map((each) => [name, each]))
  const parameters = new URLSearchParams(given.filter(([, value]) => value !== null && value !== ''))
  return parameters.size ? `?${parameters}` : ''
}
