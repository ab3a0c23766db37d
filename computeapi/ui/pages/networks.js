// A drawing of the networks: a line for each, with its servers below, and the routers between networks on the left.

import { fill, h, svg } from './dom.js'
import { Following } from './following.js'

const EVERY = 5000
// The minimum pause after a read, as a multiple of its duration.
const REST = 10
const MAX_NETWORKS = 40
const MAX_PORTS = 12
const NODE = { width: 146, height: 36, gap: 14 }
const RAIL = { top: 34, below: 18, space: 34 }
const ROUTER = { width: 120, height: 34, gap: 14 }

export class NetworksView extends Following {
  constructor(cloud, requirements) {
    super(cloud, EVERY, REST)
    this.requirements = requirements
    this.count = h('span', { class: 'quiet count', role: 'status' })
    this.alert = h('p', { class: 'alert', role: 'alert' })
    this.drawing = h('div', { class: 'drawing', tabindex: 0, role: 'group', 'aria-label': 'Drawing of the networks' })
    this.element = h('div', { class: 'view' }, h('div', { class: 'bar' }, h('h2', {}, 'Networks'), this.count), this.alert, this.drawing)
    new ResizeObserver(() => this.draw()).observe(this.drawing)
  }

  take(topology) {
    const text = JSON.stringify(topology)
    if (text === this.text) return
    Object.assign(this, { text, topology })
    this.draw()
  }

  concerns() {
    return true
  }

  async read() {
    const get = (kind, query) => this.cloud.get(`/networking/v2.0/${kind}`, query, null)
    const [{ networks }, { subnets }, { routers }, joined, { availabilityZoneInfo: zones }] = await Promise.all([
      get('networks', {}), get('subnets', {}), get('routers', {}), get('ports', { device_owner: 'network:router_interface' }),
      this.cloud.get('/v2.1/os-availability-zone')])
    const shown = networks.slice(0, MAX_NETWORKS)
    const topology = (ports, names) => this.topologyOf(networks.length - shown.length, shown, subnets, routers, joined.ports, ports, names)
    if (!this.topology) this.take(topology(shown.map(() => ({ ports: [] })), new Map()))
    // A port names the zone of its server, if the server has one.
    const owners = new Set([this.requirements.owner, ...zones.map(({ zoneName }) => `compute:${zoneName}`)])
    const ports = await Promise.all(shown.map(({ id }) => get('ports', { network_id: id, device_owner: [...owners], limit: MAX_PORTS + 1 })))
    const names = await this.namesOf(ports.flatMap((each) => each.ports.slice(0, MAX_PORTS)).map(({ device_id: id }) => id))
    this.take(topology(ports, names))
  }

  topologyOf(hidden, shown, subnets, routers, joined, ports, names) {
    return {
      hidden,
      routers: routers.map(({ id, name, external_gateway_info: gateway }) => ({
        name: name || id, networks: [gateway?.network_id, ...joined.filter((port) => port.device_id === id).map((port) => port.network_id)].filter(Boolean),
      })),
      networks: shown.map((network, at) => ({
        id: network.id, name: network.name || network.id, external: Boolean(network['router:external']), shared: network.shared,
        ranges: subnets.filter((subnet) => subnet.network_id === network.id).map(({ cidr }) => cidr),
        more: ports[at].ports.length > MAX_PORTS,
        servers: ports[at].ports.slice(0, MAX_PORTS).map(({ device_id: id, fixed_ips: ips }) => ({ id, name: names.get(id) ?? id, address: ips[0]?.ip_address ?? '' })),
      })),
    }
  }

  // The names of servers, some of which may have been deleted. The device_id of a port can be any text.
  async namesOf(ids) {
    this.names ??= new Map()
    await Promise.all([...new Set(ids)].filter((id) => id && !this.names.has(id)).map(async (id) => {
      try {
        this.names.set(id, (await this.cloud.get(`/v2.1/servers/${encodeURIComponent(id)}`)).server.name)
      } catch {
        this.names.set(id, id)
      }
    }))
    return this.names
  }

  draw() {
    if (!this.topology) return
    const { networks, routers, hidden } = this.topology
    fill(this.count, `${networks.length + hidden} ${networks.length + hidden === 1 ? 'network' : 'networks'}${hidden ? `, the first ${networks.length} drawn` : ''}`)
    const between = routers.filter((router) => router.networks.length)
    const gutter = between.length * (ROUTER.width + ROUTER.gap)
    const width = Math.max(this.drawing.clientWidth - 34, gutter + NODE.width + 40)
    const columns = Math.max(1, Math.floor((width - gutter - 20) / (NODE.width + NODE.gap)))
    let y = 6
    // External networks first, above the networks that they are connected to.
    const rails = [...networks].sort((one, other) => other.external - one.external).map((network) => {
      const rail = { network, y: y + RAIL.top, nodes: Math.max(0, Math.ceil((network.servers.length + network.more) / columns)) }
      y = rail.y + (rail.nodes ? RAIL.below + rail.nodes * (NODE.height + NODE.gap) : 0) + RAIL.space
      return rail
    })
    fill(this.drawing, networks.length ? svg('svg', { viewBox: `0 0 ${width} ${y - 20}`, width, height: y - 20 },
      rails.map((rail) => drawRail(rail, gutter, width, columns)), between.map((router, at) => drawRouter(router, rails, at * (ROUTER.width + ROUTER.gap))))
      : h('p', { class: 'quiet' }, 'There are no networks.'))
  }
}

function drawRail({ network, y }, gutter, width, columns) {
  const left = gutter + 14
  const details = [network.ranges.join(', '), network.external && 'external', network.shared && 'shared'].filter(Boolean).join(' · ')
  const places = [...network.servers, ...(network.more ? [null] : [])]
  return svg('g', { class: network.external ? 'network external' : 'network' },
    svg('text', { x: left, y: y - 10, class: 'name' }, network.name, svg('tspan', { dx: 10, class: 'facts' }, details)),
    svg('line', { x1: 0, x2: width, y1: y, y2: y }),
    places.map((server, at) => {
      const x = left + (at % columns) * (NODE.width + NODE.gap)
      const top = y + RAIL.below + Math.floor(at / columns) * (NODE.height + NODE.gap)
      return server ? drawServer(server, x, top, y) : svg('text', { x: x + 8, y: top + 21, class: 'facts' }, 'and others')
    }))
}

function drawServer({ id, name, address }, x, top, y) {
  const middle = top + NODE.height / 2
  return svg('g', {}, svg('path', { d: `M${x - 6} ${y} V${middle} H${x}`, class: 'wire' }),
    svg('a', { href: `#/servers/${encodeURIComponent(id)}`, 'aria-label': `${name} ${address}` },
      svg('title', {}, `${name} ${address}`), svg('rect', { x, y: top, width: NODE.width, height: NODE.height, rx: 7 }),
      svg('text', { x: x + 9, y: top + 15, class: 'node' }, cut(name, 18)), svg('text', { x: x + 9, y: top + 29, class: 'facts' }, cut(address, 24))))
}

function drawRouter({ name, networks }, rails, x) {
  const ends = rails.filter(({ network }) => networks.includes(network.id)).map((rail) => rail.y)
  if (!ends.length) return null
  const [top, bottom] = [Math.min(...ends), Math.max(...ends)]
  const middle = top === bottom ? top + RAIL.space / 2 + 4 : top + RAIL.below + 4 + ROUTER.height / 2
  const centre = x + ROUTER.width / 2
  return svg('g', { class: 'router' }, svg('line', { x1: centre, x2: centre, y1: top, y2: Math.max(bottom, middle), class: 'wire' }),
    ends.map((y) => svg('circle', { cx: centre, cy: y, r: 4 })), svg('rect', { x, y: middle - ROUTER.height / 2, width: ROUTER.width, height: ROUTER.height, rx: 17 }),
    svg('text', { x: centre, y: middle + 4, 'text-anchor': 'middle' }, cut(name, 16)))
}

const cut = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text)
