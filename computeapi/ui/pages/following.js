// What a view shows follows the cloud for as long as it is looked at.

export class Following {
  // milliseconds: between two looks.
  constructor(cloud, milliseconds) {
    Object.assign(this, { cloud, milliseconds })
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
}
