// The hosts, and how much of them servers use.

import { fill, h } from './dom.js'
import { Following } from './following.js'
import { load, memory } from './load.js'

const EVERY = 5000
// The minimum pause after a read, as a multiple of its duration.
const REST = 10
// The last version at which hypervisors report what is used.
const LAST = '2.87'

export class HostsView extends Following {
  constructor(cloud) {
    super(cloud, EVERY, REST)
    this.count = h('span', { class: 'quiet count', role: 'status' })
    this.alert = h('p', { class: 'alert', role: 'alert' })
    this.cards = h('ul', { class: 'cards' })
    this.element = h('div', { class: 'view' }, h('div', { class: 'bar' }, h('h2', {}, 'Hosts'), this.count), this.alert, this.cards)
  }

  concerns() {
    return true
  }

  async read() {
    // Counting what is used takes a while in a large cloud, so show the hosts before.
    if (!this.shown) await this.readAt(this.cloud.newest)
    await this.readAt(this.cloud.until(LAST))
  }

  async readAt(version) {
    const [{ hypervisors, hypervisors_links: more }, { services }] = await Promise.all([
      this.cloud.get('/v2.1/os-hypervisors/detail', {}, version), this.cloud.get('/v2.1/os-services', { binary: 'nova-compute' }, version)])
    this.paint(hypervisors, new Map(services.map((service) => [service.host, service])), Boolean(more))
  }

  // more: whether these are only the first hosts.
  paint(hosts, services, more) {
    const shown = JSON.stringify([more, hosts, [...services.values()].map(({ updated_at: at, ...rest }) => rest)])
    if (shown === this.shown) return
    this.shown = shown
    const up = hosts.filter(({ state }) => state === 'up').length
    fill(this.count, `${more ? 'the first ' : ''}${hosts.length} ${hosts.length === 1 ? 'host' : 'hosts'}, ${up} up`)
    fill(this.cards, hosts.map((host) => card(host, services.get(host.service.host))))
  }
}

function card(host, service) {
  return h('li', { class: 'card' }, h('h3', {}, host.hypervisor_hostname,
    h('span', { class: `status ${host.state === 'up' ? 'good' : 'bad'}` }, host.state), host.status === 'disabled' && h('span', { class: 'status busy' }, 'disabled')),
  h('p', { class: 'quiet' }, [counted(host.running_vms), service?.zone, host.hypervisor_type].filter(Boolean).join(' · ')),
  host.service.disabled_reason && h('p', { class: 'quiet' }, host.service.disabled_reason),
  h('div', { class: 'loads three' }, host.vcpus !== undefined && [load('VCPUs', host.vcpus_used, host.vcpus),
    load('Memory', memory(host.memory_mb_used), memory(host.memory_mb), ' GiB'), load('Disk', host.local_gb_used, host.local_gb, ' GiB')]))
}

const counted = (number) => number !== undefined && `${number} ${number === 1 ? 'server' : 'servers'}`
