// Forms for the operations of the control API, according to its own description.

import { h } from './dom.js'
import { BodyEditor } from './body.js'
import { least } from './samples.js'

const BY_NAME = ['properties', 'patternProperties']
const SEVERAL = ['oneOf', 'anyOf', 'allOf']

// A form for an operation of the control API, loaded when it is first shown. example: the initial document.
// send(document) makes the request, and throws if it fails.
export class ControlForm {
  constructor(cloud, path, { text, example = null, send }) {
    Object.assign(this, { cloud, path, example, send })
    this.editor = new BodyEditor(undefined, `${text}, JSON`)
    this.element = h('form', { class: 'trial', onsubmit: (event) => { event.preventDefault(); this.ask() } },
      this.editor.element, this.editor.alert, h('div', { class: 'buttons' }, h('button', { type: 'submit', class: 'main' }, text)))
  }

  async show() {
    const { nodes, number } = await bodyOf(this.cloud, this.path)
    if (this.shown) return
    this.shown = true
    this.editor.show(nodes, number, JSON.stringify(this.example ?? least(nodes, number), null, 2))
  }

  async ask() {
    const document = this.editor.parsed()
    if (!document) return
    this.editor.forgive()
    try {
      await this.send(document.value)
    } catch (error) {
      this.editor.refuse(error.message)
    }
  }
}

// The schema of the body for a path, as nodes: { nodes, number }.
async function bodyOf(cloud, path) {
  cloud.controlled ??= await cloud.getControl('/openapi.json')
  const { paths } = cloud.controlled
  const nodes = []
  return { nodes, number: numbered(nodes, paths[path].post.requestBody.content['application/json'].schema) }
}

// Add a schema to the nodes, with nested schemas as numbers, as in the reference of the compute API.
function numbered(nodes, schema) {
  const node = { ...schema }
  for (const keyword of BY_NAME) if (node[keyword]) node[keyword] = Object.fromEntries(Object.entries(node[keyword]).map(([name, each]) => [name, numbered(nodes, each)]))
  for (const keyword of SEVERAL) if (node[keyword]) node[keyword] = node[keyword].map((each) => numbered(nodes, each))
  for (const keyword of ['items', 'additionalProperties']) if (node[keyword] && typeof node[keyword] === 'object') node[keyword] = { node: numbered(nodes, node[keyword]) }
  return nodes.push(node) - 1
}

// The properties of an object as a list.
export const propertyList = (document) => h('dl', { class: 'headers' }, Object.entries(document).filter(([, value]) => value !== null).map(([name, value]) => (
  [h('dt', {}, name), h('dd', {}, typeof value === 'string' ? value : JSON.stringify(value))])))

// Let the browser save a text as a file.
export function keep(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }))
  h('a', { href: url, download: name }).click()
  URL.revokeObjectURL(url)
}

