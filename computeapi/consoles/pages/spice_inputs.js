// Keys and the pointer by SPICE. The guest is told of places on a keyboard, and has its own idea of what is on them.

import { Channel, INPUTS, four, two } from './spice_channel.js'
import { buttons, listenToKeys, listenToPointer, pointed } from './screen.js'

const KEY_DOWN = 101
const KEY_UP = 102
const MOTION = 111
const POSITION = 112
const PRESS = 113
const RELEASE = 114
const MOTION_ACK = 111
// So many motions the server takes note of at a time, and so many may be on their way.
const BUNCH = 4
const MAX_MOTIONS = 2 * BUNCH
// Of buttons: left, middle, right, and the wheel.
const BUTTONS = [1, 2, 3]
const UP = 4
const DOWN = 5
export const CLIENT_MODE = 2

// Scancodes of the first set, by what browsers call the keys; those of the second table have a byte before them.
const ROWS = {
  0x01: 'Escape Digit1 Digit2 Digit3 Digit4 Digit5 Digit6 Digit7 Digit8 Digit9 Digit0 Minus Equal Backspace Tab',
  0x10: 'KeyQ KeyW KeyE KeyR KeyT KeyY KeyU KeyI KeyO KeyP BracketLeft BracketRight Enter ControlLeft',
  0x1e: 'KeyA KeyS KeyD KeyF KeyG KeyH KeyJ KeyK KeyL Semicolon Quote Backquote ShiftLeft Backslash',
  0x2c: 'KeyZ KeyX KeyC KeyV KeyB KeyN KeyM Comma Period Slash ShiftRight NumpadMultiply AltLeft Space CapsLock',
  0x3b: 'F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 NumLock ScrollLock', 0x47: 'Numpad7 Numpad8 Numpad9 NumpadSubtract',
  0x4b: 'Numpad4 Numpad5 Numpad6 NumpadAdd Numpad1 Numpad2 Numpad3 Numpad0 NumpadDecimal',
  0x56: 'IntlBackslash F11 F12 NumpadEqual', 0x70: 'KanaMode', 0x73: 'IntlRo', 0x79: 'Convert', 0x7b: 'NonConvert',
  0x7d: 'IntlYen',
}
const OTHER_ROWS = {
  0x1c: 'NumpadEnter ControlRight', 0x35: 'NumpadDivide', 0x37: 'PrintScreen AltRight', 0x47: 'Home ArrowUp PageUp',
  0x4b: 'ArrowLeft', 0x4d: 'ArrowRight', 0x4f: 'End ArrowDown PageDown Insert Delete',
  0x5b: 'MetaLeft MetaRight ContextMenu',
}
const PREFIX = 0xe0
const RELEASED = 0x80

const SCANCODES = { ...scancodes(ROWS), ...scancodes(OTHER_ROWS, PREFIX) }

function scancodes(rows, ...before) {
  const each = ([first, row]) => row.split(' ').map((key, at) => [key, [...before, Number(first) + at]])
  return Object.fromEntries(Object.entries(rows).flatMap(each))
}

let pressed = 0
let underWay = 0
let last = null
let wanted = null
let mode = 0
let channel = null

export function openInputs(session, ended) {
  return new Channel(INPUTS, {
    session,
    ended,
    [MOTION_ACK]() {
      underWay = Math.max(0, underWay - BUNCH)
      move()
    },
  })
}

// Anything sent before the channel is open would be taken for a part of how it is opened.
export function beginInputs(opened) {
  channel = opened
}

// How the guest takes the pointer: where it is, or how far it moved.
export function setMode(number) {
  mode = number
}

function key(scancode, down) {
  const code = [...scancode]
  if (!down) code[code.length - 1] |= RELEASED
  channel?.send(down ? KEY_DOWN : KEY_UP, [...code, 0, 0, 0].slice(0, 4))
}

listenToKeys(({ code }) => SCANCODES[code], key, [SCANCODES.ControlLeft, SCANCODES.AltLeft, SCANCODES.Delete])

function move() {
  if (!wanted || underWay >= MAX_MOTIONS) return
  const [x, y] = wanted
  if (mode === CLIENT_MODE) channel.send(POSITION, [...four(x), ...four(y), ...two(pressed), 0])
  else if (last) channel.send(MOTION, [...four(x - last[0]), ...four(y - last[1]), ...two(pressed)])
  underWay += mode === CLIENT_MODE || last ? 1 : 0
  last = wanted
  wanted = null
}

function turn(button, down) {
  channel.send(down ? PRESS : RELEASE, [button, ...two(pressed)])
}

listenToPointer((event) => {
  if (!channel) return
  wanted = pointed(event)
  if (wanted[0] !== last?.[0] || wanted[1] !== last?.[1]) move()
  const now = buttons(event)
  BUTTONS.forEach((button, at) => {
    if (((now ^ pressed) >> at) & 1) {
      pressed ^= 1 << at
      turn(button, now & (1 << at))
    }
  })
}, (event, up) => {
  if (!channel) return
  for (const down of [true, false]) turn(up ? UP : DOWN, down)
})
