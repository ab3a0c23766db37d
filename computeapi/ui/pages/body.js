// An editor for a document, as a form or as JSON; both edit the same text.

import { fill, h } from './dom.js'
import { BodyForm } from './form.js'

const FACES = [['form', 'Form'], ['json', 'JSON']]

export class BodyEditor {
  // The face that was chosen last, for all editors.
  static face = 'form'

  // changed() is called after the form has changed the text. Input in `text` itself fires its own events.
  constructor(changed = () => {}, label = 'Request body, JSON') {
    this.changed = changed
    this.text = h('textarea', { rows: 8, spellcheck: 'false', autocomplete: 'off', 'aria-label': label })
    this.alert = h('p', { class: 'alert', role: 'alert' })
    this.faces = h('div', { class: 'choices faces', role: 'group', 'aria-label': 'Form of input' })
    this.written = h('div', { class: 'written' })
    this.element = h('div', { class: 'written' }, this.faces, this.written)
  }

  // Edit a document with this schema from now on.
  show(nodes, number, text) {
    this.form = new BodyForm(nodes, () => this.take())
    this.number = number
    this.text.value = text
    this.turn(BodyEditor.face)
  }

  // Text that is not JSON cannot be shown as a form.
  turn(face) {
    const document = face === 'form' ? this.parsed() : null
    BodyEditor.face = face
    const shown = document ? 'form' : 'json'
    fill(this.faces, FACES.map(([each, text]) => h('button', { type: 'button', 'aria-pressed': String(each === shown), onclick: () => this.turn(each) }, text)))
    if (document) this.form.show(this.number, document.value)
    fill(this.written, document ? this.form.element : this.text)
  }

  take() {
    this.text.value = JSON.stringify(this.form.value, null, 2)
    this.changed()
  }

  // { value }, or null if the text is not JSON; then the reason is shown.
  parsed() {
    fill(this.alert)
    try {
      return { value: JSON.parse(this.text.value) }
    } catch (error) {
      fill(this.alert, `The body is not JSON: ${error.message}`)
      return null
    }
  }

  // Show an error next to the field that its message names, if it names one.
  refuse(message) {
    const [, named, quoted] = /attribute (\S+)\. Value|'([^']+)'/.exec(message) ?? []
    if (!this.form.element.isConnected || !this.form.mark(named ?? quoted, message)) fill(this.alert, message)
  }

  forgive() {
    fill(this.alert)
    this.form?.unmark()
  }
}
