// What a view shows follows the cloud for as long as it is looked at.

import { fill } from './dom.js'

export class Following {
  // A view has a read(), and `trouble`, where it says what went wrong.
  // milliseconds: between two looks.  rest: how many times as long as a look took one waits for the next, at least.
  constructor(cloud, milliseconds, rest = 0) {
    Object.assign(this, { cloud, milliseconds, rest, next: 0 })
  }

  show() {
    this.look()
    this.follow()
  }

  // Look again from now on.
  look() {
    this.timer ??= setInterval(() => this.follow(), this.milliseconds)
  }

  hide() {
    clearInterval(this.timer)
    this.timer = null
  }

  async follow() {
    if (this.following || document.hidden || !this.cloud.session.who || performance.now() < this.next) return
    this.following = true
    const begun = performance.now()
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
    if (this.again) this.followNow()
  }

  // What there is has just become another: a look that is under way may not have seen it.
  followNow() {
    this.again = this.following
    this.next = 0
    if (!this.again) this.follow()
  }

  fail(error) {
    fill(this.trouble, error.message)
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
