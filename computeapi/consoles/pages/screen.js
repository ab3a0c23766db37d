// What viewers of screens have in common: the canvas, keys that are held, and where the pointer is.

import { element, leaves } from './console.js'

export const screen = element('screen')
export const canvas = screen.getContext('2d')

export function resize(width, height) {
  screen.width = width
  screen.height = height
}

// `keyOf` says for a keydown which key it is, if any, that `press` is told of with whether it goes down; `reset` are
// the keys of Ctrl+Alt+Del.
export function listenToKeys(keyOf, press, reset) {
  // By the place on the keyboard: what is let go is what was pressed, whatever else is held meanwhile.
  const held = new Map()

  screen.addEventListener('keydown', (event) => {
    if (leaves(event)) return
    const key = keyOf(event)
    if (!key) return
    event.preventDefault()
    held.set(event.code, key)
    press(key, true)
  })

  screen.addEventListener('keyup', (event) => {
    if (!held.has(event.code)) return
    event.preventDefault()
    press(held.get(event.code), false)
    held.delete(event.code)
  })

  screen.addEventListener('blur', () => {
    for (const key of held.values()) press(key, false)
    held.clear()
  })

  element('reset').addEventListener('click', () => {
    for (const key of reset) press(key, true)
    for (const key of [...reset].reverse()) press(key, false)
    screen.focus()
  })
}

// `moved` is told of each event of the pointer, `turned` of the wheel: whether it goes up.
export function listenToPointer(moved, turned) {
  for (const kind of ['pointerdown', 'pointermove', 'pointerup']) screen.addEventListener(kind, moved)
  screen.addEventListener('contextmenu', (event) => event.preventDefault())
  screen.addEventListener('wheel', (event) => {
    event.preventDefault()
    turned(event, event.deltaY < 0)
  }, { passive: false })
}

// Which dot of the screen the pointer is at.
export function pointed(event) {
  const x = (event.offsetX * screen.width) / screen.clientWidth
  const y = (event.offsetY * screen.height) / screen.clientHeight
  const within = (number, most) => Math.floor(Math.max(0, Math.min(most - 1, number)))
  return [within(x, screen.width), within(y, screen.height)]
}

// Which buttons are held: 1 for the left one, 2 for the middle one, 4 for the right one.
export function buttons(event) {
  const [left, right, middle] = [1, 2, 4].map((bit) => (event.buttons & bit ? 1 : 0))
  return left | (middle << 1) | (right << 2)
}
