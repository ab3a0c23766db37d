// The slider for versions, with a bar for how much each version changed, and the description of the chosen one.

import { fill, h, svg } from './dom.js'

const WIDTH = 1040
const HEIGHT = 44

// choose(version) is called while the slider moves; compare(version or null) when another version is chosen to compare.
export class VersionBar {
  constructor(reference, { choose, compare }) {
    this.reference = reference
    const { newest } = reference
    this.slider = h('input', {
      type: 'range', min: 0, max: newest, step: 1, id: 'version', 'aria-label': 'Version of the API',
      oninput: () => choose(Number(this.slider.value)),
    })
    this.name = h('output', { class: 'number', for: 'version' })
    this.story = h('p', { class: 'story', 'aria-live': 'polite' })
    this.back = this.stepper(-1, choose)
    this.on = this.stepper(1, choose)
    this.other = h('select', {
      id: 'other', onchange: () => compare(this.other.value === '' ? null : Number(this.other.value)),
    }, h('option', { value: '' }, 'no other version'), reference.versions.map(({ name, number }) => (
      h('option', { value: number }, name))))
    this.bars = bars(reference)
    this.element = h('section', { class: 'versions', 'aria-label': 'Version' },
      h('div', { class: 'headline' }, this.name, this.story,
        h('label', { class: 'beside', for: 'other' }, h('span', {}, 'Compare with'), this.other)),
      h('div', { class: 'scale' }, this.back,
        h('div', { class: 'track' }, this.bars.element, this.slider,
          h('div', { class: 'ends', 'aria-hidden': 'true' }, h('span', {}, reference.name(0)), h('span', {}, reference.name(newest)))),
        this.on))
  }

  stepper(by, choose) {
    return h('button', {
      type: 'button', class: 'stepper', 'aria-label': by < 0 ? 'Previous version' : 'Next version',
      onclick: () => choose(Number(this.slider.value) + by),
    }, by < 0 ? '‹' : '›')
  }

  show({ version, other }) {
    const { name, story } = this.reference.versions[version]
    this.slider.value = version
    this.slider.setAttribute('aria-valuetext', `${name}: ${story}`)
    this.other.value = other ?? ''
    fill(this.name, name)
    fill(this.story, story)
    this.back.disabled = version === 0
    this.on.disabled = version === this.reference.newest
    this.bars.show(version, other)
  }
}

function bars(reference) {
  const counts = reference.touched
  const most = Math.sqrt(Math.max(1, ...counts))
  // The knob stays within the slider, so the centres of the outermost bars are half a knob from its ends.
  const step = WIDTH / counts.length
  const columns = counts.map((count, number) => {
    const height = count ? 3 + (Math.sqrt(count) / most) * (HEIGHT - 3) : 1
    return svg('rect', { x: number * step + step * 0.18, width: step * 0.64, y: HEIGHT - height, height, rx: 1.5 })
  })
  const element = svg('svg', {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: 'bars', preserveAspectRatio: 'none', 'aria-hidden': 'true',
  }, columns)
  const show = (version, other) => columns.forEach((column, number) => {
    const [low, high] = other === null ? [version, version] : [Math.min(version, other) + 1, Math.max(version, other)]
    column.setAttribute('class', number === version ? 'here' : number >= low && number <= high ? 'within' : number < version ? 'past' : 'ahead')
  })
  return { element, show }
}
