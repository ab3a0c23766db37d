// All servers, in pages that are fetched while scrolling, with their states as they change.

import { fill, h } from './dom.js'
import { Following } from './following.js'
import { LongList } from './rows.js'
import { ago, status } from './states.js'

const PAGE = 60
const CHANGED_AT_MOST = 200
const EVERY = 2000
// The minimum pause after a read, as a multiple of its duration.
const REST = 2
const STATUSES = ['ACTIVE', 'BUILD', 'DELETED', 'ERROR', 'HARD_REBOOT', 'MIGRATING', 'PASSWORD', 'PAUSED', 'REBOOT', 'REBUILD', 'RESCUE',
  'RESIZE', 'REVERT_RESIZE', 'SHELVED', 'SHELVED_OFFLOADED', 'SHUTOFF', 'SOFT_DELETED', 'SUSPENDED', 'VERIFY_RESIZE']

export class ServersView extends Following {
  constructor(cloud) {
    super(cloud, EVERY, REST)
    this.name = h('input', { type: 'search', placeholder: 'Name', 'aria-label': 'Filter servers by name', autocomplete: 'off', spellcheck: 'false', oninput: () => this.later() })
    this.status = h('select', { 'aria-label': 'Status', onchange: () => this.begin() },
      h('option', { value: '' }, 'Any status'), STATUSES.map((each) => h('option', {}, each)))
    this.count = h('span', { class: 'quiet count', role: 'status' })
    this.alert = h('p', { class: 'alert', role: 'alert' })
    const head = h('div', { role: 'row', class: 'line head' }, ['Name', 'Status', 'Flavor', 'Addresses', 'Host', 'Created'].map((text) => h('span', { role: 'columnheader' }, text)))
    this.list = new LongList({ height: 44, label: 'Servers', head, row: (server, number) => this.row(server, number), more: () => this.fetchMore() })
    this.element = h('div', { class: 'view servers' },
      h('div', { class: 'bar' }, h('h2', {}, 'Servers'), this.name, this.status, this.count), this.alert, this.list.element)
  }

  // Start to follow. What was shown before stays until there is something else.
  show() {
    this.look()
    if (this.owner !== this.cloud.session.who) this.begin()
    else this.follow()
  }

  concerns() {
    return true
  }

  later() {
    clearTimeout(this.typing)
    this.typing = setTimeout(() => this.begin(), 200)
  }

  get wanted() {
    return { name: this.name.value.trim(), status: this.status.value, all_tenants: this.cloud.seesAll ? '1' : null }
  }

  // Start again with the first page.
  begin() {
    this.owner = this.cloud.session.who
    Object.assign(this, { known: new Map(), changed: new Map(), last: null, ended: false, fetching: false, since: null, turn: {} })
    this.list.scroller.scrollTop = 0
    this.fetchMore()
  }

  async fetchMore() {
    if (this.fetching || this.ended || !this.known) return
    this.fetching = true
    const { turn, since } = this
    try {
      const { servers } = await this.cloud.get('/v2.1/servers/detail', { ...this.wanted, limit: PAGE, marker: this.last?.id ?? null })
      if (turn !== this.turn) return
      for (const server of servers) this.known.set(server.id, server)
      this.last = servers.at(-1) ?? this.last
      // The page may not contain what was read meanwhile, so read it again.
      if (since !== null) this.since = since
      this.ended = servers.length < PAGE
      fill(this.alert)
    } catch (error) {
      if (turn === this.turn) {
        this.ended = true
        this.fail(error)
      }
    }
    if (turn !== this.turn) return
    this.fetching = false
    this.paint()
  }

  // Read what changed, including deleted servers, which are removed from the list.
  async read() {
    // Wait until there is a page.
    if (!this.known || (!this.known.size && !this.ended)) return
    const { turn, since } = this
    const { all_tenants, name } = this.wanted
    const from = since ?? [...this.known.values()].map(({ updated }) => updated).sort().at(-1) ?? null
    const query = { all_tenants, name, 'changes-since': from, sort_key: 'updated_at', sort_dir: 'desc', limit: CHANGED_AT_MOST }
    try {
      let last = null
      do {
        const { servers } = await this.cloud.get('/v2.1/servers/detail', { ...query, marker: last?.id ?? null })
        if (turn !== this.turn) return
        this.take(servers)
        last = servers.length < CHANGED_AT_MOST ? null : servers.at(-1)
        // The first read covers changes while a page was fetched. Changes of the same second are in each response.
      } while (last && since !== null && last.updated > from)
    } catch (error) {
      if (turn !== this.turn) return
      this.since = since
      throw error
    }
  }

  take(servers) {
    const fresh = []
    let moved = false
    for (const server of servers) {
      if (server.updated > (this.since ?? '')) this.since = server.updated
      const before = this.known.get(server.id)
      const fits = server.status !== 'DELETED' && (!this.status.value || server.status === this.status.value)
      if (before && JSON.stringify(before) === JSON.stringify(server)) continue
      if (!fits) moved = this.known.delete(server.id) || moved
      else if (before) { this.changed.set(server.id, Date.now()); this.known.set(server.id, server); moved = true }
      else if (this.belongs(server)) fresh.push([server.id, server])
    }
    // The newest come first, as in the pages.
    if (fresh.length) this.known = new Map([...fresh, ...this.known].sort(([, one], [, other]) => (one.created < other.created) - (one.created > other.created)))
    if (fresh.length || moved) this.paint()
  }

  // Whether a server belongs to the fetched pages; an older one comes with its page.
  belongs(server) {
    return this.ended || server.created >= this.last.created
  }

  paint() {
    const servers = [...this.known.values()]
    const text = servers.length === 1 ? '1 server' : `${servers.length} servers`
    fill(this.count, this.ended ? text : `${text} loaded, scroll for more`)
    this.list.show(servers)
    this.element.classList.toggle('none', this.ended && !servers.length)
  }

  row(server, number) {
    const flavor = server.flavor?.original_name ?? server.flavor?.id ?? ''
    const addresses = Object.values(server.addresses ?? {}).flat().map(({ addr }) => addr)
    const recent = Date.now() - (this.changed.get(server.id) ?? 0) < 3000
    const cell = (kind, ...content) => h('span', { role: 'cell', class: kind }, content)
    return h('div', { role: 'row', 'aria-rowindex': number + 2, class: recent ? 'line recent' : 'line' },
      cell('name', h('a', { href: `#/servers/${encodeURIComponent(server.id)}` }, server.name || server.id)), cell('', status(server)), cell('wide', flavor),
      cell('wide', addresses.slice(0, 2).join(', ')), cell('wide', server['OS-EXT-SRV-ATTR:host'] ?? ''), cell('wide', server.created && `${ago(server.created)} ago`))
  }
}
