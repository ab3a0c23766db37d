// How much of something is used, as a bar with numbers.

import { h } from './dom.js'

const HIGH = 0.8

// limit: null or negative means none.  unit: a text.
export function load(name, used, limit, unit = '') {
  const bounded = limit !== null && limit >= 0
  const share = bounded && limit > 0 ? Math.min(1, used / limit) : used > 0 && bounded ? 1 : 0
  const text = bounded ? `${short(used)} of ${short(limit)}${unit}` : `${short(used)}${unit}, no limit`
  const filled = h('span', { class: share >= 1 ? 'full' : share >= HIGH ? 'high' : null })
  filled.style.width = `${(share * 100).toFixed(1)}%`
  return h('div', { class: 'load' }, h('span', { class: 'what' }, name), h('span', { class: 'numbers' }, text),
    bounded && h('div', { class: 'meter', role: 'meter', 'aria-label': name, 'aria-valuemin': 0, 'aria-valuemax': Math.max(limit, used), 'aria-valuenow': used, 'aria-valuetext': text }, filled))
}

// MiB as GiB.
export const memory = (mebibytes) => mebibytes / 1024

const short = (number) => Number(number.toFixed(1)).toLocaleString('en')
