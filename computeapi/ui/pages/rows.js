// A list of any length, of which only the visible rows are created.

import { fill, h } from './dom.js'

const MORE = 12

// height: of a row, in pixels.  row(item, number) creates a row.  more() is called near the end of the list.
export class LongList {
  constructor({ height, row, more, label, head }) {
    Object.assign(this, { height, row, more })
    this.items = []
    this.window = h('div', { class: 'window', role: 'rowgroup' })
    this.space = h('div', { class: 'space' }, this.window)
    this.scroller = h('div', { class: 'scroller', tabindex: 0, role: 'table', 'aria-label': label, onscroll: () => this.paint() },
      h('div', { role: 'rowgroup', class: 'heads' }, head), this.space)
    new ResizeObserver(() => this.paint()).observe(this.scroller)
    this.element = this.scroller
  }

  show(items) {
    this.items = items
    this.scroller.setAttribute('aria-rowcount', String(items.length + 1))
    this.space.style.height = `${items.length * this.height}px`
    this.paint(true)
  }

  paint(anew = false) {
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / this.height) - MORE)
    const last = Math.min(this.items.length, Math.ceil((this.scroller.scrollTop + this.scroller.clientHeight) / this.height) + MORE)
    if (last >= this.items.length - MORE) this.more()
    if (!anew && first === this.first && last === this.last) return
    Object.assign(this, { first, last })
    const focused = this.window.contains(document.activeElement) ? document.activeElement.getAttribute('href') : null
    this.window.style.transform = `translateY(${first * this.height}px)`
    fill(this.window, this.items.slice(first, last).map((item, at) => this.row(item, first + at)))
    if (focused) this.window.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true })
  }
}
