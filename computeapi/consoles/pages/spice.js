// A viewer of SPICE: the main channel, and by what it says the screen, the keys and the pointer.

import { element, end, name } from './console.js'
import { text } from './incoming.js'
import { screen } from './screen.js'
import { Channel, DISPLAY, INPUTS, MAIN, two } from './spice_channel.js'
import { beginDisplay, openDisplay } from './spice_display.js'
import { CLIENT_MODE, beginInputs, openInputs, setMode } from './spice_inputs.js'

const INIT = 103
const CHANNELS = 104
const MODE = 105
const NAME = 113
const ATTACH_CHANNELS = 104
const ASK_FOR_MODE = 105
const NAMES = 1 << 1
const INSECURE = 'SPICE requires cryptography that browsers provide only over HTTPS, or on the local machine.'

const channels = []
let session = 0

// ------------------------------------------------------------------ the main channel

const HANDLERS = {
  [INIT](message) {
    session = message.getUint32(0, true)
    takeMode(message.getUint32(8, true), message.getUint32(12, true))
    channels[0].send(ATTACH_CHANNELS)
  },
  [CHANNELS](message) {
    const count = message.getUint32(0, true)
    const kinds = Array.from({ length: count }, (_, at) => message.getUint8(4 + 2 * at))
    if (kinds.includes(DISPLAY)) run(openDisplay(session, over), beginDisplay)
    if (kinds.includes(INPUTS)) run(openInputs(session, over), begin)
  },
  [MODE](message) {
    takeMode(message.getUint16(0, true), message.getUint16(2, true))
  },
  [NAME](message) {
    name(text(new Uint8Array(message.buffer, 4)).replace(/\0.*$/s, ''))
  },
}

function takeMode(possible, current) {
  setMode(current)
  if (possible & CLIENT_MODE && current !== CLIENT_MODE) channels[0].send(ASK_FOR_MODE, two(CLIENT_MODE))
}

function begin(inputs) {
  beginInputs(inputs)
  element('reset').disabled = false
  screen.focus()
}

// ------------------------------------------------------------------ all of them

// The channels end with the first that does.
function over() {
  element('reset').disabled = true
  for (const channel of channels) channel.close()
}

async function run(channel, opened = () => {}) {
  channels.push(channel)
  try {
    await channel.open()
    opened(channel)
    await channel.listen()
  } catch (error) {
    end(error.message)
    over()
  }
}

if (crypto.subtle) run(new Channel(MAIN, { able: NAMES, ended: over, ...HANDLERS }))
else end(INSECURE)
