// A terminal for serial consoles: text that comes line by line, keys that go as terminals send them.

import { connect, element, leaves } from './console.js'

const MAX_LINES = 2000
// A guest may never end a line, nor a sequence that it has begun.
const MAX_LINE_LENGTH = 1024
// What comes in the meantime is shown together: a browser takes long to lay out what it shows.
const SHOW_MILLISECONDS = 50
// What is pasted goes in pieces, since a proxy takes no messages of any length.
const PIECE = 16384
// Escape sequences, but for the one that erases the rest of a line, move or colour what this terminal does not.
const SEQUENCE = /^\x1b(?:\[[0-?]*[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-Za-z]|[^[\]()])/
const UNFINISHED = /^\x1b(?:\[[0-?]{0,200}[ -/]{0,200}|\][^\x07\x1b]{0,200}|[()])?$/
const KEYS = {
  Enter: '\r', Backspace: '\x7f', Tab: '\t', Escape: '\x1b', Delete: '\x1b[3~', Home: '\x1b[H', End: '\x1b[F',
  ArrowUp: '\x1b[A', ArrowDown: '\x1b[B', ArrowRight: '\x1b[C', ArrowLeft: '\x1b[D',
}

const screen = element('screen')
const past = element('past')
const decoder = new TextDecoder()
let line = []
let column = 0
let pending = ''
let done = []
let shows = false

const socket = connect({ received: (bytes) => write(decoder.decode(bytes, { stream: true })), opened: () => screen.focus() })

// ------------------------------------------------------------------ what comes in

function write(text) {
  text = pending + text
  pending = ''
  for (let at = 0; at < text.length;) {
    if (text[at] === '\x1b') {
      const rest = text.slice(at)
      const found = SEQUENCE.exec(rest)
      if (!found && UNFINISHED.test(rest)) {
        pending = rest
        break
      }
      if (found?.[0].startsWith('\x1b[') && found[1] === 'K') line.length = Math.min(line.length, column)
      at += found ? found[0].length : 1
    } else {
      const character = String.fromCodePoint(text.codePointAt(at))
      put(character)
      at += character.length
    }
  }
  if (!shows) setTimeout(show, SHOW_MILLISECONDS)
  shows = true
}

function put(character) {
  if (character === '\r') column = 0
  else if (character === '\b') column = Math.max(0, column - 1)
  else if (character === '\t') column += 8 - (column % 8)
  else if (character === '\n') endLine()
  else if (character >= ' ' && character !== '\x7f') {
    while (line.length < column) line.push(' ')
    line[column++] = character
  }
  if (column >= MAX_LINE_LENGTH) endLine()
}

function endLine() {
  done.push(line.join(''))
  if (done.length > 2 * MAX_LINES) done = done.slice(-MAX_LINES)
  line = []
  column = 0
}

// Lines that are done are added to the past, which assistive technology reads as it grows.
function show() {
  const below = screen.scrollTop + screen.clientHeight >= screen.scrollHeight - 2
  while (line.length < column) line.push(' ')
  past.append(...done.slice(-MAX_LINES).map((text) => `${text}\n`))
  while (past.childNodes.length > MAX_LINES) past.firstChild.remove()
  done = []
  element('before').textContent = line.slice(0, column).join('')
  element('cursor').textContent = line[column] ?? ' '
  element('after').textContent = line.slice(column + 1).join('')
  if (below) screen.scrollTop = screen.scrollHeight
  shows = false
}

// ------------------------------------------------------------------ what goes out

function send(text) {
  for (let at = 0; socket.readyState === WebSocket.OPEN && at < text.length; at += PIECE) {
    socket.send(new TextEncoder().encode(text.slice(at, at + PIECE)))
  }
}

function typed(event) {
  if (event.key in KEYS) return KEYS[event.key]
  if ([...event.key].length !== 1) return ''
  if (event.ctrlKey && !event.altKey) return /[a-z@[\\\]^_ ]/i.test(event.key) ? control(event.key) : ''
  return event.altKey && !event.ctrlKey ? `\x1b${event.key}` : event.key
}

const control = (character) => String.fromCharCode(character.toUpperCase().charCodeAt(0) & 31)

// Copying and pasting, by the keys that terminals have for it, is the browser's.
function isForTheBrowser(event) {
  const copies = event.ctrlKey && event.key.toLowerCase() === 'c' && !getSelection().isCollapsed
  return event.metaKey || copies || (event.ctrlKey && event.shiftKey) || (event.shiftKey && event.key === 'Insert')
}

screen.addEventListener('keydown', (event) => {
  if (leaves(event) || event.isComposing || isForTheBrowser(event)) return
  const text = typed(event)
  if (!text) return
  event.preventDefault()
  send(text)
})

screen.addEventListener('paste', (event) => {
  event.preventDefault()
  send(event.clipboardData.getData('text').replaceAll(/\r?\n/g, '\r'))
})
