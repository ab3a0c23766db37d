// A viewer of RFB 3.8 (RFC 6143): raw pixels and copied rectangles, keys and the pointer.

import { connect, element, end, name } from './console.js'
import { Incoming, text, view } from './incoming.js'
import { buttons, canvas, listenToKeys, listenToPointer, pointed, resize, screen } from './screen.js'

const NO_SECURITY = 1
const RAW = 0
const COPY = 1
const DESKTOP_SIZE = -223
// Pixels as a canvas has them: red, green, blue and a byte that RFB does not use.
const PIXELS = [32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 0, 8, 16, 0, 0, 0]
const KEYSYMS = {
  Backspace: 0xff08, Tab: 0xff09, Enter: 0xff0d, Escape: 0xff1b, Delete: 0xffff, Insert: 0xff63,
  Home: 0xff50, ArrowLeft: 0xff51, ArrowUp: 0xff52, ArrowRight: 0xff53, ArrowDown: 0xff54,
  PageUp: 0xff55, PageDown: 0xff56, End: 0xff57,
  Shift: 0xffe1, Control: 0xffe3, CapsLock: 0xffe5, Meta: 0xffe7, Alt: 0xffe9, AltGraph: 0xfe03,
}
for (let number = 1; number <= 12; number++) KEYSYMS[`F${number}`] = 0xffbd + number

const incoming = new Incoming()
const socket = connect({
  received: (chunk) => incoming.add(chunk),
  ended: () => (element('reset').disabled = true),
})
const take = (count) => incoming.take(count)
let begun = false

// ------------------------------------------------------------------ what goes out

function send(bytes) {
  if (socket.readyState === WebSocket.OPEN) socket.send(new Uint8Array(bytes))
}

const two = (number) => [(number >> 8) & 255, number & 255]
const four = (number) => [...two(number >>> 16), ...two(number)]

function ask(incremental) {
  send([3, incremental ? 1 : 0, 0, 0, 0, 0, ...two(screen.width), ...two(screen.height)])
}

// Keys and the pointer: what is sent of them earlier would be taken for a part of how the conversation begins.
function input(bytes) {
  if (begun) send(bytes)
}

function key(keysym, down) {
  input([4, down ? 1 : 0, 0, 0, ...four(keysym)])
}

// ------------------------------------------------------------------ the conversation

async function converse() {
  await take(12)
  send(new TextEncoder().encode('RFB 003.008\n'))
  const [types] = await take(1)
  if (!(await take(types)).includes(NO_SECURITY)) throw new Error('The server asks for a password.')
  send([NO_SECURITY])
  if (view(await take(4)).getUint32(0)) throw new Error(text(await take(view(await take(4)).getUint32(0))))
  send([1])
  const facts = view(await take(24))
  resize(facts.getUint16(0), facts.getUint16(2))
  name(text(await take(facts.getUint32(20))))
  send([0, 0, 0, 0, ...PIXELS])
  send([2, 0, ...two(3), ...four(COPY), ...four(RAW), ...four(DESKTOP_SIZE)])
  begun = true
  element('reset').disabled = false
  screen.focus()
  ask(false)
  for (;;) await MESSAGES[(await take(1))[0]]()
}

const MESSAGES = {
  0: async function update() {
    const count = view(await take(3)).getUint16(1)
    for (let number = 0; number < count; number++) await rectangle()
    ask(true)
  },
  1: async function colours() {
    await take(6 * view(await take(5)).getUint16(3))
  },
  2: async function bell() {},
  3: async function cut() {
    await take(view(await take(7)).getUint32(3))
  },
}

async function rectangle() {
  const facts = view(await take(12))
  const [x, y, width, height] = [0, 2, 4, 6].map((at) => facts.getUint16(at))
  const encoding = facts.getInt32(8)
  if (encoding === DESKTOP_SIZE) {
    resize(width, height)
  } else if (encoding === COPY) {
    const from = view(await take(4))
    canvas.drawImage(screen, from.getUint16(0), from.getUint16(2), width, height, x, y, width, height)
  } else if (encoding === RAW && width && height) {
    const pixels = new Uint8ClampedArray((await take(width * height * 4)).buffer)
    for (let at = 3; at < pixels.length; at += 4) pixels[at] = 255
    canvas.putImageData(new ImageData(pixels, width, height), x, y)
  }
}

// ------------------------------------------------------------------ keys and the pointer

function keysymOf({ key: pressed }) {
  const code = [...pressed].length === 1 ? pressed.codePointAt(0) : 0
  return code ? (code <= 0xff ? code : 0x01000000 + code) : KEYSYMS[pressed]
}

listenToKeys(keysymOf, key, [KEYSYMS.Control, KEYSYMS.Alt, KEYSYMS.Delete])

function point(event, wheel = 0) {
  const [x, y] = pointed(event)
  input([5, buttons(event) | wheel, ...two(x), ...two(y)])
}

listenToPointer((event) => point(event), (event, up) => {
  point(event, up ? 8 : 16)
  point(event)
})

converse().catch((error) => {
  end(error.message)
  socket.close()
})
