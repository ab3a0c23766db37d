// A channel of SPICE: how it is opened, and the messages on it. Numbers begin with their lowest byte.

import { connect } from './console.js'
import { Incoming, view } from './incoming.js'

export const MAIN = 1
export const DISPLAY = 2
export const INPUTS = 3

const MAGIC = 0x51444552
const MAJOR = 2
const MINOR = 2
const TICKET = 1
// Choosing how to prove who one is, by a ticket; and short headers of messages.
const COMMON = (1 << 0) | (1 << 1) | (1 << 3)
const SHORT_HEADERS = 1 << 3
const LINK_BYTES = 18
const MAX_LINK_BYTES = 4096
const KEY_BYTES = 162
// More than the pixels of any screen.
const MAX_BYTES = 256 * 1024 * 1024
// What both sides say on any channel.
const SET_ACK = 3
const PING = 4
const ACK_SYNC = 1
const ACK = 2
const PONG = 3
const FIRST_OF_CHANNEL = 101

export const two = (number) => [number & 255, (number >> 8) & 255]
export const four = (number) => [...two(number), ...two(number >>> 16)]

export class Channel {
  window = 0
  unacknowledged = 0

  // session: 0 for the main channel, which says it.  able: what the client can do on such a channel, as bits.
  // handlers: what to do about its messages, by their numbers; each is given a view of what one says. `other` is told
  // of the numbers of the rest.
  constructor(kind, { session = 0, able = 0, ended, ...handlers }) {
    this.handlers = handlers
    this.incoming = new Incoming()
    this.socket = connect({
      opened: () => this.raw(link(kind, session, able)),
      received: (chunk) => this.incoming.add(chunk),
      ended,
    })
  }

  take(count) {
    return this.incoming.take(count)
  }

  raw(bytes) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(new Uint8Array(bytes))
  }

  send(kind, bytes = []) {
    this.raw([...two(kind), ...four(bytes.length), ...bytes])
  }

  close() {
    this.socket.close()
  }

  // ------------------------------------------------------------------ how it is opened

  async open() {
    const header = view(await this.take(16))
    const size = header.getUint32(12, true)
    if (header.getUint32(0, true) !== MAGIC || header.getUint32(4, true) !== MAJOR || size > MAX_LINK_BYTES) {
      throw new Error('The other end does not speak SPICE.')
    }
    const reply = await this.take(size)
    const facts = view(reply)
    if (facts.getUint32(0, true)) throw new Error('The server does not offer this channel.')
    const common = facts.getUint32(4 + KEY_BYTES + 8, true)
    if (!(facts.getUint32(common, true) & SHORT_HEADERS)) throw new Error('The SPICE version of the server is too old.')
    this.raw([...four(TICKET), ...(await ticket(reply.subarray(4, 4 + KEY_BYTES)))])
    if (view(await this.take(4)).getUint32(0, true)) throw new Error('The server asks for a password.')
  }

  // ------------------------------------------------------------------ messages

  async listen() {
    for (;;) {
      const header = view(await this.take(6))
      const size = header.getUint32(2, true)
      if (size > MAX_BYTES) throw new Error('The server sent a message that is too long.')
      this.hear(header.getUint16(0, true), view(await this.take(size)))
    }
  }

  hear(kind, message) {
    if (kind === SET_ACK) {
      this.window = message.getUint32(4, true)
      this.unacknowledged = 0
      return this.send(ACK_SYNC, four(message.getUint32(0, true)))
    }
    this.unacknowledged++
    if (this.window && this.unacknowledged >= this.window) {
      this.unacknowledged = 0
      this.send(ACK)
    }
    if (kind === PING) this.send(PONG, new Uint8Array(message.buffer, 0, 12))
    else if (this.handlers[kind]) this.handlers[kind](message)
    else if (kind >= FIRST_OF_CHANNEL) this.handlers.other?.(kind)
  }
}

function link(kind, session, able) {
  const body = [...four(session), kind, 0, ...four(1), ...four(1), ...four(LINK_BYTES), ...four(COMMON), ...four(able)]
  return [...four(MAGIC), ...four(MAJOR), ...four(MINOR), ...four(body.length), ...body]
}

// The password, which is empty: who may come here the proxy knows by the token.
async function ticket(key) {
  const oaep = { name: 'RSA-OAEP', hash: 'SHA-1' }
  const imported = await crypto.subtle.importKey('spki', key, oaep, false, ['encrypt'])
  return new Uint8Array(await crypto.subtle.encrypt(oaep, imported, new Uint8Array(1)))
}
