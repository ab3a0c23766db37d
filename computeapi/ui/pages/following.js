// What a view shows follows the cloud for as long as it is looked at.

import { fill } from './dom.js'

// How often one looks though news come: not all that is shown is told.
const SELDOM = 15_000

export class Following {
  // A view has a read(), `trouble`, where it says what went wrong, and concerns(news) if it is about servers.
  // milliseconds: between two looks.  rest: how many times as long as a look took one waits for the next, at least.
  constructor(cloud, milliseconds, rest = 0) {
    Object.assign(this, { cloud, milliseconds, rest, next: 0, looked: 0 })
    this.hear = (news) => this.concerns(news) && this.soon()
  }

  show() {
    this.look()
    this.follow()
  }

  // Look again from now on.
  look() {
    this.timer ??= setInterval(() => this.tick(), this.milliseconds)
    if (this.concerns) this.cloud.news.listen(this.hear)
  }

  hide() {
    clearInterval(this.timer)
    clearTimeout(this.waiting)
    this.timer = this.waiting = null
    this.cloud.news.leave(this.hear)
  }

  tick() {
    const told = this.concerns && this.cloud.news.live
    if (this.due || !told || performance.now() > this.looked + SELDOM) this.follow()
  }

  async follow() {
    if (this.following || document.hidden || !this.cloud.session.who || performance.now() < this.next) return
    this.following = true
    this.due = false
    const begun = this.looked = performance.now()
    try {
      await this.read()
      if (this.failed) fill(this.trouble)
      this.failed = false
    } catch (error) {
      this.fail(error)
      this.failed = true
    } finally {
      this.following = false
      this.next = performance.now() + this.rest * (performance.now() - begun)
    }
    if (this.due) this.soon()
  }

  // There is something new, which a look that is under way may not have seen.
  soon() {
    this.due = true
    if (this.following || this.waiting) return
    const left = this.next - performance.now()
    if (left <= 0) this.follow()
    else this.waiting = setTimeout(() => { this.waiting = null; this.follow() }, left)
  }

  // What there is has just become another by what was done here.
  followNow() {
    this.next = 0
    this.soon()
  }

  fail(error) {
    fill(this.trouble, error.message)
  }

  // The control API makes the cloud another one, which nobody is logged in to: tokens are part of what was.
  async controlAll(method, path) {
    this.hide()
    try {
      await this.cloud.sendControl(method, path)
      await this.cloud.session.logOut()
    } catch (error) {
      this.show()
      fill(this.trouble, error.message)
    }
  }

  // What the control API is to do; what it answers, or null where it did not.
  async control(method, path, document) {
    try {
      const told = await this.cloud.sendControl(method, path, document)
      fill(this.trouble)
      return told ?? {}
    } catch (error) {
      fill(this.trouble, error.message)
      return null
    } finally {
      this.followNow()
    }
  }
}
