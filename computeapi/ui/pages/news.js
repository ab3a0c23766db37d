// Which servers change: a stream while a view listens. Without a stream, views poll.

import { OWN } from './session.js'

// When to give up a silent stream, and how long to wait before a new attempt.
const SILENCE = 40_000
const AGAIN = 10_000
const REFUSED = 60_000

export class News {
  // session: knows whether there is a stream for the user.
  constructor(session) {
    this.session = session
    this.listeners = new Set()
    this.live = false
    document.addEventListener('visibilitychange', () => this.turn())
    session.addEventListener('change', () => { this.end(); this.turn() })
  }

  // hear({ servers, more }) is called with the IDs of servers that changed; more: whether others changed, too.
  listen(hear) {
    this.listeners.add(hear)
    this.turn()
  }

  leave(hear) {
    this.listeners.delete(hear)
    // Wait, because the next view may listen.
    setTimeout(() => this.turn())
  }

  // Begin or end the stream, as required: hidden windows must not use up the few connections of a browser.
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
      // Any error leads to a new attempt.
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

  // The first event proves that no proxy buffers the stream; views look for earlier changes themselves.
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
