// What the pages of consoles have in common: the way to the proxy, and the bar above the screen.

const REFUSED = 'Access denied: this URL has expired, or the server is not running. Request a new URL.'

export const element = (id) => document.getElementById(id)

// The address of the page is what the compute API gave out: ?token=..., or ?path=?token=... as noVNC takes it.
function token() {
  const query = new URLSearchParams(location.search)
  const path = query.get('path') ?? ''
  return query.get('token') ?? new URLSearchParams(path.slice(path.indexOf('?') + 1)).get('token') ?? ''
}

// A WebSocket to the proxy that the page is from. `received` is told of bytes, `opened` and `ended` of what they say.
export function connect({ opened = () => {}, received, ended = () => {} }) {
  const url = new URL('./', location.href)
  url.protocol = url.protocol.replace('http', 'ws')
  url.search = new URLSearchParams({ token: token() })
  const socket = new WebSocket(url)
  let wasOpen = false
  socket.binaryType = 'arraybuffer'
  socket.addEventListener('open', () => {
    wasOpen = true
    tell('Connected')
    opened()
  })
  socket.addEventListener('message', (event) => received(new Uint8Array(event.data)))
  socket.addEventListener('close', (event) => {
    end(wasOpen ? `Closed. ${event.reason || 'The connection was lost.'}` : REFUSED)
    ended()
  })
  return socket
}

export function tell(state) {
  element('state').textContent = state
}

let over = false

// Why the console is closed. What is said after that follows from it.
export function end(state) {
  if (over) return
  over = true
  tell(state)
  element('again').hidden = false
}

// What the server is called, in the page and its title.
export function name(text) {
  element('name').textContent = text
  document.title = `${text} – console`
}

// Whether a key is the one that leaves the screen, so that nobody is caught in it who has no mouse; then it does.
export function leaves(event) {
  if (!(event.key === 'Home' && event.ctrlKey && event.altKey)) return false
  event.preventDefault()
  element('full').focus()
  return true
}

element('again').addEventListener('click', () => location.reload())
element('full').addEventListener('click', async () => {
  await document.querySelector('main').requestFullscreen()
  element('screen').focus()
})
