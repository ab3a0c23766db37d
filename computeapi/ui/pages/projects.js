// Projects, and how much of their quotas they use.

import { fill, h } from './dom.js'
import { load, memory } from './load.js'

const QUOTAS = [['instances', 'Servers'], ['cores', 'VCPUs'], ['ram', 'Memory', ' GiB'], ['server_groups', 'Server groups']]
const OF_LIMITS = {
  instances: ['totalInstancesUsed', 'maxTotalInstances'], cores: ['totalCoresUsed', 'maxTotalCores'],
  ram: ['totalRAMUsed', 'maxTotalRAMSize'], server_groups: ['totalServerGroupsUsed', 'maxServerGroups'],
}

export class ProjectsView {
  constructor(cloud) {
    this.cloud = cloud
    this.count = h('span', { class: 'quiet count', role: 'status' })
    this.alert = h('p', { class: 'alert', role: 'alert' })
    this.cards = h('ul', { class: 'cards' })
    this.element = h('div', { class: 'view' }, h('div', { class: 'bar' }, h('h2', {}, 'Projects'), this.count), this.alert, this.cards)
    // Only read the quotas of projects that are visible.
    this.seen = new IntersectionObserver((entries) => {
      for (const { isIntersecting: is, target } of entries) if (is) { this.seen.unobserve(target); this.read(target) }
    }, { rootMargin: '200px' })
  }

  async show() {
    const { who } = this.cloud.session
    try {
      const projects = who.admin ? (await this.cloud.get('/identity/v3/projects')).projects : [{ id: null, name: who.project, enabled: true }]
      this.paint(projects)
    } catch (error) {
      fill(this.alert, error.message)
    }
  }

  hide() {
    this.seen.disconnect()
  }

  paint(projects) {
    this.seen.disconnect()
    fill(this.alert)
    fill(this.count, `${projects.length} ${projects.length === 1 ? 'project' : 'projects'}`)
    fill(this.cards, projects.map(({ id, name, enabled }) => {
      const loads = h('div', { class: 'loads', 'data-id': id })
      const card = h('li', { class: 'card' }, h('h3', {}, name, !enabled && h('span', { class: 'status bad' }, 'disabled')), id && h('p', { class: 'quiet' }, h('code', {}, id)), loads)
      this.seen.observe(loads)
      return card
    }))
  }

  async read(place) {
    try {
      const id = place.dataset.id
      const quotas = id ? (await this.cloud.get(`/v2.1/os-quota-sets/${encodeURIComponent(id)}/detail`)).quota_set : ofLimits(await this.cloud.get('/v2.1/limits'))
      fill(place, QUOTAS.filter(([name]) => quotas[name]).map(([name, text, unit]) => {
        const { in_use: used, limit } = quotas[name]
        return name === 'ram' ? load(text, memory(used), limit < 0 ? limit : memory(limit), unit) : load(text, used, limit)
      }))
    } catch (error) {
      fill(place, h('p', { class: 'alert' }, error.message))
    }
  }
}

const ofLimits = ({ limits: { absolute } }) => Object.fromEntries(Object.entries(OF_LIMITS)
  .map(([name, [used, limit]]) => [name, { in_use: absolute[used], limit: absolute[limit] }]))
