// A run whose life can be computed by hand: 1000 s of work on eight nodes of eight devices, with a
// synchronous checkpoint of 10 s every 100 s, and without failures unless a test adds them. A
// restart takes 15 s, of which loading takes 4 s.
#pragma once

#include "simulator/life/settings.h"

namespace trainyard {

inline LifeSettings quiet_run() {
  LifeSettings settings;
  settings.work = Seconds(1000);
  settings.devices = 64;
  settings.nodes = 8;
  settings.devices_per_node = 8;
  settings.replicas = 8;
  settings.spares = 8;
  settings.mode = CheckpointMode::synchronous;
  settings.interval = Seconds(100);
  settings.copy = Seconds(1);
  settings.tiers = {{.write = Seconds(10), .read = Seconds(4), .every = 1, .copies = 0}};
  Reliability& reliability = settings.reliability;
  reliability.device_mtbf = Seconds(1e12);
  reliability.heartbeat = {.interval = Seconds(1e-9), .misses = 1, .loss = 0};
  reliability.restart = {
      .diagnose = Seconds(5), .reschedule = Seconds(1), .start = Seconds(2), .warm_up = Seconds(3)};
  reliability.repair = Seconds(1e9);
  return settings;
}

}  // namespace trainyard
