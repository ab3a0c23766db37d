// What tests did to the cloud, and tools for them, in several parts.

import { CoverageMap } from './coverage.js'
import { fill, h } from './dom.js'
import { EventList } from './events.js'
import { Journal } from './journal.js'
import { Hints, Outages } from './outages.js'
import { faultRules, statePlans, webhooks } from './rules.js'
import { DryRuns, Scenes } from './scenes.js'
import { TimeAndSnapshots } from './time.js'

const NAMES = {
  journal: 'Journal', events: 'Events', coverage: 'Coverage', faults: 'Faults', plans: 'States', outages: 'Outages', time: 'Clock and snapshots',
  scenes: 'Contents', dry: 'Dry run', webhooks: 'Webhooks', hints: 'Hints',
}

export class TestsView {
  constructor(cloud) {
    this.parts = {
      journal: new Journal(cloud), events: new EventList(cloud), coverage: new CoverageMap(cloud), faults: faultRules(cloud), plans: statePlans(cloud), outages: new Outages(cloud),
      time: new TimeAndSnapshots(cloud), scenes: new Scenes(cloud), dry: new DryRuns(cloud), webhooks: webhooks(cloud), hints: new Hints(cloud),
    }
    this.nav = h('nav', { class: 'views parts', 'aria-label': 'Test tools' })
    this.place = h('div', { class: 'place' })
    this.element = h('div', { class: 'view tests' }, h('div', { class: 'bar' }, h('h2', {}, 'Tests'), this.nav), this.place)
  }

  show(id) {
    const name = Object.hasOwn(this.parts, id) ? id : 'journal'
    const part = this.parts[name]
    for (const each of Object.values(this.parts)) if (each !== part) each.hide()
    fill(this.nav, Object.entries(NAMES).map(([each, text]) => h('a', { href: `#/tests/${each}`, 'aria-current': each === name ? 'page' : null }, text)))
    this.nav.querySelector('[aria-current]').scrollIntoView({ block: 'nearest', inline: 'nearest' })
    if (this.place.firstElementChild !== part.element) fill(this.place, part.element)
    part.show()
  }

  hide() {
    for (const each of Object.values(this.parts)) each.hide()
  }
}
