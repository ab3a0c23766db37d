// The screen of a guest by SPICE: pixels as they are, areas of one colour, and areas that move.

import { Channel, DISPLAY, four } from './spice_channel.js'
import { canvas, resize, screen } from './screen.js'

const SCREEN = 0
const PRIMARY = 1
const MAX_SIDE = 16384
const PUT = 1 << 3
const SOLID = 1
const RECTANGLES = 1
const BITMAP = 0
const PIXELS_OF_32_BITS = [8, 9]
const TOP_DOWN = 4
const INIT = 101
// What changes nothing of the picture, or what is held of it here, which is nothing.
const UNIMPORTANT = [102, 103, 105, 106, 107, 108, 315, 317]

const HANDLERS = {
  104: copyBits,
  302: fill,
  304: copy,
  314: createSurface,
  other(kind) {
    if (!UNIMPORTANT.includes(kind)) throw new Error(`The server draws in a way that was not asked for: ${kind}.`)
  },
}

export function openDisplay(session, ended) {
  return new Channel(DISPLAY, { session, ended, ...HANDLERS })
}

// Neither pictures nor what compresses them is kept here: caches and dictionaries of no size.
export function beginDisplay(channel) {
  channel.send(INIT, [0, ...four(0), ...four(0), 0, ...four(0)])
}

// ------------------------------------------------------------------ what a message says

class Reader {
  constructor(message, at = 0) {
    this.message = message
    this.at = at
  }

  byte() {
    return this.message.getUint8(this.at++)
  }

  half() {
    return this.message.getUint16((this.at += 2) - 2, true)
  }

  number() {
    return this.message.getUint32((this.at += 4) - 4, true)
  }

  signed() {
    return this.message.getInt32((this.at += 4) - 4, true)
  }

  point() {
    return { x: this.signed(), y: this.signed() }
  }

  box() {
    const [top, left, bottom, right] = [this.signed(), this.signed(), this.signed(), this.signed()]
    return { left, top, width: right - left, height: bottom - top }
  }

  // Where something is drawn: all of the box, or what of it is in the parts.
  place() {
    if (this.number() !== SCREEN) throw new Error('The server draws outside the screen.')
    const box = this.box()
    if (this.byte() !== RECTANGLES) return { box, parts: [box] }
    return { box, parts: Array.from({ length: this.number() }, () => common(box, this.box())) }
  }

  // How it is: as it comes, nothing of what was there before is seen through it.
  plain() {
    if (this.half() !== PUT) throw new Error('The server blends colours, which this page does not support.')
  }
}

function common(one, other) {
  const left = Math.max(one.left, other.left)
  const top = Math.max(one.top, other.top)
  const right = Math.min(one.left + one.width, other.left + other.width)
  const bottom = Math.min(one.top + one.height, other.top + other.height)
  return { left, top, width: Math.max(0, right - left), height: Math.max(0, bottom - top) }
}

// ------------------------------------------------------------------ what is drawn

function createSurface(message) {
  const reader = new Reader(message)
  const [number, width, height] = [reader.number(), reader.number(), reader.number()]
  reader.number()
  if (number !== SCREEN || !(reader.number() & PRIMARY)) throw new Error('The server draws outside the screen.')
  if (!width || !height || Math.max(width, height) > MAX_SIDE) throw new Error('The screen has an impossible size.')
  resize(width, height)
}

function fill(message) {
  const reader = new Reader(message)
  const { parts } = reader.place()
  if (reader.byte() !== SOLID) throw new Error('The server draws patterns, which this page does not support.')
  canvas.fillStyle = `#${(reader.number() & 0xffffff).toString(16).padStart(6, '0')}`
  reader.plain()
  for (const { left, top, width, height } of parts) canvas.fillRect(left, top, width, height)
}

function copyBits(message) {
  const reader = new Reader(message)
  const { box, parts } = reader.place()
  const { x, y } = reader.point()
  canvas.save()
  canvas.beginPath()
  for (const { left, top, width, height } of parts) canvas.rect(left, top, width, height)
  canvas.clip()
  canvas.drawImage(screen, x, y, box.width, box.height, box.left, box.top, box.width, box.height)
  canvas.restore()
}

function copy(message) {
  const reader = new Reader(message)
  const { box, parts } = reader.place()
  const at = reader.number()
  const area = reader.box()
  reader.plain()
  if (area.width !== box.width || area.height !== box.height) throw new Error('The server scales images, which this page does not support.')
  const image = picture(new Reader(message, at))
  const [x, y] = [box.left - area.left, box.top - area.top]
  for (const { left, top, width, height } of parts) canvas.putImageData(image, x, y, left - x, top - y, width, height)
}

function picture(reader) {
  reader.at += 8
  const kind = reader.byte()
  reader.at += 9
  const form = kind === BITMAP ? reader.byte() : null
  if (!PIXELS_OF_32_BITS.includes(form)) throw new Error(`The server compresses pictures: ${kind}, ${form}.`)
  const flags = reader.byte()
  const [width, height, stride] = [reader.number(), reader.number(), reader.number()]
  // There is no palette, of which the place would be next.
  reader.number()
  const image = new ImageData(width, height)
  const pixels = new Uint32Array(image.data.buffer)
  for (let line = 0; line < height; line++) {
    const from = reader.at + (flags & TOP_DOWN ? line : height - 1 - line) * stride
    for (let column = 0; column < width; column++) {
      // Blue, green, red and nothing become red, green, blue and all of it.
      pixels[line * width + column] = 0xff000000 | (reader.message.getUint32(from + column * 4) >>> 8)
    }
  }
  return image
}
