// Which operations tests used, and at which versions: a map of all operations.

import { fill, h, svg } from './dom.js'

const WIDTH = 312
const HEIGHT = 14
// How many request numbers of a finding are shown.
const MAX_REQUESTS = 8

export class CoverageMap {
  constructor(cloud) {
    this.cloud = cloud
    this.summary = h('p', {})
    this.used = h('input', { type: 'checkbox', id: 'used', onchange: () => this.paint() })
    this.map = h('div', { class: 'map' })
    this.alert = h('p', { class: 'alert', role: 'alert' })
    this.findings = h('ul', { class: 'findings' })
    this.element = h('div', { class: 'coverage' }, h('div', { class: 'bar' }, this.summary, h('label', { class: 'count' }, this.used, ' only used operations')),
      h('p', { class: 'quiet legend' }, h('span', { class: 'key there' }), ' available ', h('span', { class: 'key step' }), ' changed here ', h('span', { class: 'key used' }), ' used'), this.alert, h('section', {}, h('h3', {}, 'Avoidable requests'), this.findings), this.map)
  }

  async show() {
    try {
      const [document, { findings }] = await Promise.all([this.cloud.getControl('/journal/coverage'), this.cloud.getControl('/journal/findings')])
      this.document = document
      fill(this.findings, findings.length ? findings.map(({ kind, message, entries }) => h('li', {}, h('b', {}, kind.replaceAll('_', ' ')), ` ${message} `, h('span', { class: 'quiet' }, `requests ${entries.slice(0, MAX_REQUESTS).join(', ')}${entries.length > MAX_REQUESTS ? ' …' : ''}`)))
        : h('li', { class: 'quiet' }, 'No avoidable requests were found.'))
      fill(this.alert)
      this.paint()
    } catch (error) {
      fill(this.alert, error.message)
    }
  }

  hide() {
  }

  paint() {
    if (!this.document) return
    const { used, of, steps_used: stepsUsed, steps, resources } = this.document
    fill(this.summary, h('b', {}, `${used} of ${of}`), ' operations were used, and ', h('b', {}, `${stepsUsed} of ${steps}`), ' of their versions')
    const shown = resources.map(({ covered, ...rest }) => ({ ...rest, covered: covered.filter(({ requests }) => requests || !this.used.checked) }))
    fill(this.map, shown.filter(({ covered }) => covered.length).map(({ resource, covered, used: some, of: all }) => h('section', {},
      h('h3', {}, resource, ' ', h('span', { class: 'count' }, `${some} of ${all}`)), h('ul', {}, covered.map((each) => this.line(each))))))
  }

  line({ operation: name, requests, microversions }) {
    const { reference } = this.cloud
    const operation = reference.recordedAs(name)
    const text = requests ? `${requests} ${requests === 1 ? 'request' : 'requests'}${microversions.length ? ` at ${microversions.join(', ')}` : ''}` : 'not used'
    return h('li', { class: requests ? null : 'unused' }, operation ? h('a', { href: `#/api?${new URLSearchParams({ v: microversions.at(-1) ?? reference.name(reference.newest), op: operation.name })}` }, name) : h('span', {}, name),
      operation && strip(reference, operation, microversions), h('span', { class: 'quiet' }, text))
  }
}

function strip(reference, operation, microversions) {
  const step = WIDTH / reference.versions.length
  const bar = (kind, first, last, height) => svg('rect', { class: kind, x: first * step, width: (last - first + 1) * step, y: (HEIGHT - height) / 2, height })
  return svg('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: 'strip', 'aria-hidden': 'true', preserveAspectRatio: 'none' },
    operation.lifetime.map(([first, last]) => bar('there', first, last, 6)),
    operation.steps.filter(({ statuses }) => statuses).map(({ from }) => svg('rect', { class: 'step', x: from * step, width: 1.2, y: 2, height: HEIGHT - 4 })),
    microversions.map((name) => reference.number(name)).filter((number) => number !== null).map((number) => bar('used', number, number, HEIGHT)))
}
