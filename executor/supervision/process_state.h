// What the operating system says of a process of this host.
#pragma once

namespace trainyard {

// Whether a process is there and has not ended; one that has and that nobody has asked about is
// not.
bool is_alive(int process);

// Whether it was stopped (SIGSTOP, a debugger): it does nothing until it is told to go on.
bool is_stopped(int process);

}  // namespace trainyard
