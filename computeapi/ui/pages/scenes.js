// The content of the cloud as a file, and dry runs of requests for servers.

import { ControlForm, propertyList, keep } from './control.js'
import { fill, h } from './dom.js'

const EXAMPLE = `version: 1
servers:
  - {name: web, flavor: m1.small, status: SHUTOFF}
`

export class Scenes {
  constructor(cloud) {
    this.cloud = cloud
    this.text = h('textarea', { rows: 12, spellcheck: 'false', autocomplete: 'off', 'aria-label': 'Document to add, YAML' })
    this.text.value = EXAMPLE
    this.file = h('input', { type: 'file', accept: '.yaml,.yml,.json', 'aria-label': 'File to add', onchange: () => this.readFile() })
    this.hashes = h('input', { type: 'checkbox' })
    this.alert = h('p', { class: 'alert', role: 'alert' })
    this.result = h('div', { role: 'status' })
    this.element = h('div', { class: 'two' },
      h('section', {}, h('h3', {}, 'Add to the cloud'), h('form', { onsubmit: (event) => { event.preventDefault(); this.load() } }, this.file, this.text, this.alert,
        h('div', { class: 'buttons' }, h('button', { type: 'submit', class: 'main' }, 'Add')), this.result)),
      h('section', {}, h('h3', {}, 'Export the cloud'), h('label', { class: 'count' }, this.hashes, ' with hashes of passwords'),
        h('div', { class: 'buttons' }, h('button', { type: 'button', onclick: () => this.save() }, 'Save as cloud.yaml')), h('p', { class: 'quiet' }, 'Load the file to create a cloud like this one.')))
  }

  show() {
  }

  hide() {
  }

  async readFile() {
    const [file] = this.file.files
    if (file) this.text.value = await file.text()
  }

  async load() {
    fill(this.alert)
    fill(this.result)
    try {
      const { accounts } = await this.cloud.sendControl('POST', '/load', { document: this.text.value })
      fill(this.result, h('p', {}, 'Added to the cloud.'), accounts.length > 0 && h('ul', { class: 'rules' }, accounts.map((account) => h('li', { class: 'card' }, propertyList(account)))))
    } catch (error) {
      fill(this.alert, error.message)
    }
  }

  async save() {
    try {
      keep('cloud.yaml', 'application/yaml', await this.cloud.textOfControl(`/export?hashes=${this.hashes.checked}`))
    } catch (error) {
      fill(this.alert, error.message)
    }
  }
}

export class DryRuns {
  constructor(cloud) {
    this.result = h('div', { role: 'status' })
    const server = { name: 'web', flavorRef: '1', imageRef: '', networks: 'none' }
    this.form = new ControlForm(cloud, '/dry-run', { text: 'Dry run', example: { server, microversion: cloud.newest, user: 'demo' },
      send: async (document) => fill(this.result, report(await cloud.sendControl('POST', '/dry-run', document))) })
    this.alert = h('p', { class: 'alert', role: 'alert' })
    this.element = h('div', { class: 'two' }, h('section', {}, h('h3', {}, 'A request for servers'), h('p', { class: 'quiet' }, 'The request is checked like a real one, but nothing is created.'), this.form.element, this.alert),
      h('section', {}, h('h3', {}, 'Result'), this.result))
  }

  show() {
    this.form.show().catch((error) => fill(this.alert, error.message))
  }

  hide() {
  }
}

function report({ possible, status, message, servers }) {
  const hosts = (those) => those.map((each) => each.host ?? each).join(', ') || 'none'
  return [h('p', {}, h('span', { class: `status ${possible ? 'good' : 'bad'}` }, possible ? 'possible' : 'not possible'), ` ${status}${message ? `: ${message}` : ''}`),
    h('ul', { class: 'rules' }, servers.map(({ host, message: why, needs, filters, candidates, full }) => h('li', { class: 'card' }, h('p', {}, h('b', {}, host ? `Host: ${host}` : why ?? 'No valid host')), propertyList(needs ?? {}),
      h('p', {}, 'Candidates: ', hosts(candidates ?? [])), full?.length > 0 && h('p', {}, 'Full: ', hosts(full)),
      h('ul', {}, (filters ?? []).map(({ filter, passed, refused, reason }) => h('li', {}, h('code', {}, filter ?? 'all hosts'), ` ${passed.length} pass`, refused.length > 0 && `, not ${hosts(refused)}`, reason && `: ${reason}`))))))]
}
