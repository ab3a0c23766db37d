// Which servers change, as they do: a stream for as long as somebody looks; where there is none, views look now and then.

import { OWN } from './session.js'

// How long nothing at all may be heard, and how long one waits before one tries again.
const SILENCE = 40_000
const AGAIN = 10_000
const REFUSED = 60_000

export class News {
  // session: tells whether there is a stream for who is logged in.
  constructor(session) {
    this.session = session
    this.listeners = new Set()
    this.live = false
    document.addEventListener('visibilitychange', () => this.turn())
    session.addEventListener('change', () => { this.end(); this.turn() })
  }

  // hear({ servers, more }) is called with the ids of those that changed; more: whether others did, too.
  listen(hear) {
    this.listeners.add(hear)
    this.turn()
  }

  leave(hear) {
    this.listeners.delete(hear)
    // The next view may listen, too.
    setTimeout(() => this.turn())
  }

  // Begins or ends, as is wanted now: a window that nobody sees must not keep a connection of the few that a browser has.
  turn() {
    const wanted = this.listeners.size > 0 && !document.hidden && Boolean(this.session.who?.news)
    if (!wanted) this.end()
    else if (!this.ending) this.begin()
  }

  end() {
    this.ending?.abort()
    this.ending = null
    this.live = false
  }

  async begin() {
    const ending = this.ending = new AbortController()
    let pause = AGAIN
    try {
      const answer = await fetch('news', { headers: OWN, signal: ending.signal })
      if (!answer.ok) pause = REFUSED
      else await this.read(answer.body.pipeThrough(new TextDecoderStream()).getReader(), ending)
    } catch {
      // It is tried again, whatever it was.
    }
    ending.abort()
    if (ending !== this.ending) return
    this.live = false
    setTimeout(() => {
      if (ending !== this.ending) return
      this.ending = null
      this.turn()
    }, pause)
  }

  async read(reader, ending) {
    let rest = ''
    for (;;) {
      const silent = setTimeout(() => ending.abort(), SILENCE)
      const { done, value } = await reader.read().finally(() => clearTimeout(silent))
      if (done || ending !== this.ending) return
      const events = (rest + value).split('\n\n')
      rest = events.pop()
      for (const event of events) this.take(event)
    }
  }

  // The first thing that comes proves that nobody on the way keeps it back; what changed until then is looked up.
  take(event) {
    const lines = event.split('\n')
    if (lines.includes('event: end')) return
    const data = lines.find((line) => line.startsWith('data: '))
    if (!this.live) this.tell({ servers: [], more: true })
    this.live = true
    if (data) this.tell(JSON.parse(data.slice('data: '.length)))
  }

  tell(heard) {
    for (const hear of this.listeners) hear(heard)
  }
}
