// The state of a process of this host, as the operating system knows it.
#pragma once

namespace trainyard {

// Whether a process exists and has not ended; a zombie, which has ended and was not waited for, is
// not alive.
bool is_alive(int process);

// Whether a process was stopped (SIGSTOP, a debugger): it does nothing until it is continued.
bool is_stopped(int process);

}  // namespace trainyard
