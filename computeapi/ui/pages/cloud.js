// What the cloud says to who is logged in, as documents.

import { News } from './news.js'

export class Trouble extends Error {
  constructor(message, status) {
    super(message)
    this.status = status
  }
}

export class Cloud {
  // newest: the version to ask for, unless another one is.
  constructor(session, reference) {
    Object.assign(this, { session, reference, newest: reference.name(reference.newest), news: new News(session) })
  }

  // The document at a path; Trouble with what the cloud says. query: an object, without what is null or ''.
  async get(path, query = {}, version = this.newest) {
    const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== null && value !== ''))
    return this.taken(await this.session.ask(path + (asked.size ? `?${asked}` : ''), { version, look: true }))
  }

  async send(method, path, document, version = this.newest) {
    const body = document === undefined ? undefined : JSON.stringify(document)
    return this.taken(await this.session.ask(path, { method, version, body }))
  }

  taken({ status, text }) {
    const document = text.startsWith('{') ? JSON.parse(text) : null
    if (status < 400) return document
    const [fault] = Object.values(document ?? {})
    // The page's own server says why without an envelope.
    throw new Trouble(fault?.message ?? document?.message ?? `The cloud responded with ${status}.`, status)
  }

  // The same of the control API.
  async getControl(path, query = {}) {
    const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== null && value !== ''))
    return this.taken(await this.session.ask(path + (asked.size ? `?${asked}` : ''), { at: 'control' }))
  }

  // What it answers as text, such as a file.
  async textOfControl(path) {
    const { status, text } = await this.session.ask(path, { at: 'control' })
    if (status >= 400) this.taken({ status, text })
    return text
  }

  async sendControl(method, path, document) {
    const body = document === undefined ? undefined : JSON.stringify(document)
    return this.taken(await this.session.ask(path, { method, body, at: 'control' }))
  }

  // The older of the two: of the versions until which something is shown, where the newest that is offered is none.
  until(name) {
    const number = this.reference.number(name)
    return number === null ? this.newest : name
  }

  // The rule that refuses an operation to who is logged in, for what is of their own project or as rights say; null where none does.
  ruleAgainst(name, rights = this.session.who) {
    const step = this.reference.byName.get(name)?.at(this.reference.newest)
    if (!step || step.policy === undefined) return null
    const rule = this.reference.policies[step.policy].name
    return rights?.refused.includes(rule) ? rule : null
  }

  // What the rules say of what another user has in another project: { refused, all, admin }.
  async rightsFor(project, user) {
    return this.taken(await this.session.ask(`?${new URLSearchParams({ project_id: project, user_id: user })}`, { at: 'rules' }))
  }

  // Whether the servers of all projects are theirs to see.
  get seesAll() {
    return Boolean(this.session.who?.all)
  }
}
