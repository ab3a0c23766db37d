// A server: its properties, actions and history.

import { fill, h } from './dom.js'
import { Following } from './following.js'
import { least } from './samples.js'
import { ago, obstacle, status, taskOf } from './states.js'

const EVERY = 1500
const ACTIONS = '/servers/{server_id}/action'
const EVENTS_OF = 8
const LINES = 200
const FINAL = new Set(['delete', 'forceDelete'])

export class ServerView extends Following {
  constructor(cloud, requirements) {
    super(cloud, EVERY)
    this.requirements = requirements
    this.head = h('header', { class: 'about' })
    this.buttons = h('div', { class: 'actions' })
    this.alert = h('p', { class: 'alert', role: 'alert' })
    this.facts = h('dl', { class: 'facts' })
    this.past = h('ol', { class: 'past' })
    this.log = h('pre', { tabindex: 0, role: 'group', 'aria-label': 'Console log' })
    this.logged = h('details', { class: 'log', ontoggle: () => this.readLog() }, h('summary', {}, 'Console log'), this.log)
    this.question = h('dialog', { 'aria-labelledby': 'question' })
    this.element = h('div', { class: 'view server' }, h('a', { class: 'back', href: '#/servers' }, 'Servers'), this.head, this.alert,
      h('section', {}, h('h3', {}, 'Actions'), this.buttons), h('section', {}, h('h3', {}, 'Details'), this.facts), this.logged,
      h('section', {}, h('h3', {}, 'History'), this.past), this.question)
  }

  show(id) {
    if (id !== this.id) {
      Object.assign(this, { id, of: null, server: null, actionEvents: new Map(), shown: null, happened: null })
      fill(this.head, h('p', { class: 'quiet' }, 'Loading …'))
      for (const part of [this.buttons, this.facts, this.past, this.log, this.alert]) fill(part)
      this.logged.open = false
    }
    this.look()
    this.followNow()
  }

  concerns({ servers, more }) {
    return more || servers.includes(this.id)
  }

  get path() {
    return `/v2.1/servers/${encodeURIComponent(this.id)}`
  }

  async read() {
    const { id, path } = this
    try {
      const { server } = await this.cloud.get(path)
      // Policy rules may depend on the owner.
      if (this.of !== `${id} ${server.tenant_id}`) this.rights = await this.cloud.rightsFor(server.tenant_id, server.user_id)
      const [volumes, actions] = await Promise.all([this.cloud.get(`${path}/os-volume_attachments`), this.cloud.get(`${path}/os-instance-actions`)])
      // The user may have gone to another server meanwhile.
      if (id !== this.id) return
      this.of = `${id} ${server.tenant_id}`
      this.paint(server, volumes.volumeAttachments)
      await this.paintPast(actions.instanceActions)
    } catch (error) {
      if (id === this.id) throw error
    }
  }

  fail(error) {
    if (error.status === 404) {
      this.hide()
      fill(this.head, h('h2', {}, 'This server does not exist (any more)'))
      for (const part of [this.buttons, this.facts]) fill(part)
    } else super.fail(error)
  }

  paint(server, volumes) {
    const shown = JSON.stringify([server, volumes])
    if (shown === this.shown) return
    const isFirst = !this.server
    Object.assign(this, { server, shown })
    // The log may have been opened before.
    if (isFirst) this.readLog()
    document.title = `${server.name} – computeapi`
    fill(this.head, h('h2', {}, server.name), status(server), server.locked && h('span', { class: 'status busy' }, 'locked', server.locked_reason && h('small', {}, server.locked_reason)),
      server.progress ? h('progress', { max: 100, value: server.progress, 'aria-label': 'Progress' }) : null)
    this.paintButtons()
    this.paintFacts(server, volumes)
  }

  // ------------------------------------------------------------------ actions

  paintButtons() {
    const { reference } = this.cloud
    const there = reference.operations.filter(({ path, action }) => path === ACTIONS && action).filter((operation) => operation.at(reference.newest))
    const gone = (operation) => operation.at(reference.newest).statuses[0] >= 400
    const listed = [...there.filter((operation) => !gone(operation)).map((operation) => ({ name: operation.action, operation })), { name: 'delete', operation: reference.byName.get('DELETE /servers/{server_id}') },
    { name: 'console', operation: reference.byName.get('POST /servers/{server_id}/remote-consoles') }].filter(({ operation }) => operation)
    // Actions about the state first, actions that delete the server last.
    const rank = ({ name }) => (FINAL.has(name) ? 2 : this.requirements.actions[name]?.[0].states ? 0 : 1)
    const actions = listed.sort((one, other) => rank(one) - rank(other)).map((each) => ({ ...each, reason: this.reasonAgainst(each) }))
    const focused = this.buttons.contains(document.activeElement) ? document.activeElement.dataset.action : null
    fill(this.buttons,
      h('div', { class: 'possible' }, actions.filter(({ reason }) => !reason).map((each) => this.button(each))),
      h('details', { class: 'impossible' }, h('summary', {}, `${actions.filter(({ reason }) => reason).length} unavailable in its current state or to you`),
        h('ul', {}, actions.filter(({ reason }) => reason).map(({ name, reason }) => h('li', {}, h('code', {}, inWords(name)), ' ', h('span', { class: 'quiet' }, reason))))))
    if (focused) this.buttons.querySelector(`[data-action="${CSS.escape(focused)}"]`)?.focus()
  }

  // Why an action is not possible: a policy rule, or the state of the server.
  reasonAgainst({ name, operation }) {
    const rule = this.cloud.ruleAgainst(operation.name, this.rights)
    return rule ? ['The rule ', h('code', {}, rule), ' does not allow it.'] : obstacle(this.requirements, this.server, name, this.rights.admin)
  }

  // An action without parameters is done at once. Others, and those with a response, link to the view of the API.
  button({ name, operation }) {
    const { reference } = this.cloud
    if (name === 'console') return h('button', { type: 'button', 'data-action': name, onclick: () => this.openConsole() }, name)
    const { body, response } = operation.at(reference.newest)
    const document = body === undefined ? { [name]: null } : least(reference.nodes, body)
    const text = inWords(name)
    if (name !== 'delete' && (response !== undefined || asksFor(document[name]))) {
      const asked = new URLSearchParams({ v: reference.name(reference.newest), op: operation.name, server_id: this.id })
      return h('a', { class: 'button', href: `#/api?${asked}`, 'data-action': name }, `${text} …`)
    }
    return h('button', { type: 'button', 'data-action': name, class: FINAL.has(name) ? 'final' : null, onclick: () => this.ask(name, operation, document) }, text)
  }

  ask(name, operation, document) {
    const act = () => this.act(operation, name === 'delete' ? undefined : document)
    if (!FINAL.has(name)) return act()
    fill(this.question, h('form', { onsubmit: (event) => { event.preventDefault(); this.question.close(); act() } },
      h('h2', { id: 'question' }, `Delete ${this.server.name}?`), h('p', { class: 'quiet' }, 'This cannot be undone.'),
      h('div', { class: 'buttons' }, h('button', { type: 'button', onclick: () => this.question.close() }, 'Cancel'), h('button', { type: 'submit', class: 'main' }, 'Delete'))))
    this.question.showModal()
  }

  async act({ method, action }, document) {
    fill(this.alert)
    try {
      await this.cloud.send(method, this.path + (action ? '/action' : ''), document)
    } catch (error) {
      fill(this.alert, error.message)
      return
    }
    if (FINAL.has(action ?? 'delete')) {
      this.hide()
      location.hash = '#/servers'
    } else this.followNow()
  }

  async openConsole() {
    // A popup blocker would block a window that is opened later than the click.
    const opened = open('', '_blank')
    if (!opened) return fill(this.alert, 'The browser blocked the console window. Allow pop-ups for this page.')
    try {
      const { remote_console: console } = await this.cloud.send('POST', `${this.path}/remote-consoles`, { remote_console: { protocol: 'vnc', type: 'novnc' } })
      opened.opener = null
      opened.location = console.url
    } catch (error) {
      opened.close()
      fill(this.alert, error.message)
    }
  }

  async readLog() {
    if (!this.logged.open || !this.server) return
    const { id } = this
    try {
      const answer = await this.cloud.send('POST', `${this.path}/action`, { 'os-getConsoleOutput': { length: LINES } })
      // The user may have gone to another server meanwhile.
      if (id !== this.id) return
      fill(this.log, answer.output || 'No output yet.')
      this.log.scrollTop = this.log.scrollHeight
    } catch (error) {
      fill(this.log, error.message)
    }
  }

  // ------------------------------------------------------------------ properties

  paintFacts(server, volumes) {
    const row = (name, ...value) => value.flat().some((each) => each !== null && each !== undefined && each !== '' && each !== false) && [h('dt', {}, name), h('dd', {}, value)]
    const flavor = server.flavor ?? {}
    fill(this.facts, row('ID', h('code', {}, server.id)), row('Flavor', flavor.original_name ?? flavor.id, flavor.vcpus && h('span', { class: 'quiet' }, ` ${flavor.vcpus} VCPUs, ${flavor.ram} MiB, ${flavor.disk} GiB`)),
      row('Image', server.image?.properties?.name ?? server.image?.id ?? 'none (boots from a volume)'),
      row('Addresses', Object.entries(server.addresses ?? {}).map(([network, those]) => h('div', {}, h('span', { class: 'quiet' }, `${network} `), those.map(({ addr, 'OS-EXT-IPS:type': type }) => [h('code', {}, addr), type === 'floating' ? ' (floating) ' : ' '])))),
      row('Volumes', volumes.map(({ volumeId, device, delete_on_termination: goes }) => h('div', {}, h('code', {}, device ?? ''), ' ', h('code', {}, volumeId), goes && h('span', { class: 'quiet' }, ' deleted with the server')))),
      row('Host', server['OS-EXT-SRV-ATTR:host']), row('Zone', server['OS-EXT-AZ:availability_zone']),
      row('Project', h('code', {}, server.tenant_id)), row('Key pair', server.key_name), row('Tags', server.tags?.join(', ')), row('Metadata', Object.entries(server.metadata ?? {}).map(([name, value]) => h('div', {}, h('code', {}, `${name}=${value}`)))),
      row('Created', server.created), row('Fault', server.fault && [h('strong', {}, server.fault.message)]))
  }

  // ------------------------------------------------------------------ history

  async paintPast(actions) {
    const recent = actions.slice(0, EVENTS_OF)
    await Promise.all(recent.map(async ({ request_id: id, updated_at: at }) => {
      const known = this.actionEvents.get(id)
      if (known?.at === at && known.done) return
      const { instanceAction } = await this.cloud.get(`${this.path}/os-instance-actions/${id}`)
      const events = instanceAction.events ?? []
      this.actionEvents.set(id, { at, events, done: events.every(({ finish_time: end }) => end) && !taskOf(this.server) })
    }))
    const shown = JSON.stringify([actions, [...this.actionEvents]])
    if (shown === this.happened) return
    this.happened = shown
    fill(this.past, actions.map((each) => this.happening(each)))
  }

  happening({ action, start_time: start, message, request_id: id }) {
    const events = [...(this.actionEvents.get(id)?.events ?? [])].reverse()
    return h('li', { class: message ? 'bad' : null }, h('p', {}, h('b', {}, action), ' ', h('time', { datetime: start, title: start, class: 'quiet' }, `${ago(start)} ago`), message && h('span', { class: 'alert' }, ` ${message}`)),
      events.length > 0 && h('ul', {}, events.map(({ event, start_time: begun, finish_time: end, result, host }) => h('li', { class: result === 'Error' ? 'bad' : null },
        h('code', {}, event.replace(/^compute_/, '').replaceAll('_', ' ')), ' ', h('span', { class: 'quiet' }, end ? lasted(begun, end) : 'in progress', host && ` on ${host}`)))))
  }
}

// Whether the smallest body of an action contains a value to choose.
function asksFor(value) {
  return typeof value === 'object' && value !== null ? Object.values(value).some(asksFor) : typeof value === 'string' || typeof value === 'number'
}

// 'os-migrateLive' becomes 'migrate live'.
const inWords = (name) => name.replace(/^os-/, '').replaceAll(/([a-z])([A-Z])/g, '$1 $2').replaceAll('_', ' ').toLowerCase()

function lasted(begun, end) {
  const seconds = (Date.parse(`${end}Z`) - Date.parse(`${begun}Z`)) / 1000
  return seconds < 10 ? `${seconds.toFixed(1)} s` : `${seconds.toFixed(0)} s`
}
