import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.Method;
import java.util.Arrays;
import py4j.Py4JException;
import py4j.reflection.MethodInvoker;
import py4j.reflection.ReflectionEngine;

/** Refuses a call whose arguments are as near to one overload of a class as to another. */
public final class OneOverload extends ReflectionEngine {

  public MethodInvoker getMethod(Class called, String name, Class[] given) {
    MethodInvoker taken = super.getMethod(called, name, given);
    Method[] declared = taken.getMethod().getDeclaringClass().getDeclaredMethods();
    for (int i = 0; i < declared.length; i++) {
      if (declared[i].getName().equals(name) && isOther(declared[i], taken.getMethod(), given)) {
        require(taken, MethodInvoker.buildInvoker(declared[i], given), taken.getMethod(), declared[i]);
      }
    }
    return taken;
  }

  public MethodInvoker getConstructor(Class called, Class[] given) {
    MethodInvoker taken = super.getConstructor(called, given);
    Constructor[] declared = called.getConstructors();
    for (int i = 0; i < declared.length; i++) {
      if (isOther(declared[i], taken.getConstructor(), given)) {
        require(taken, MethodInvoker.buildInvoker(declared[i], given), taken.getConstructor(), declared[i]);
      }
    }
    return taken;
  }

  private static boolean isOther(Executable declared, Executable taken, Class[] given) {
    boolean isCompilers = declared.isSynthetic() || taken.isSynthetic();
    return declared.getParameterTypes().length == given.length && !isCompilers
        && !Arrays.equals(declared.getParameterTypes(), taken.getParameterTypes()) && declared.trySetAccessible();
  }

  private static void require(MethodInvoker taken, MethodInvoker other, Executable first, Executable second) {
    if (taken.getCost() == other.getCost()) {
      throw new Py4JException("Py4J may take either: " + first + ", " + second);
    }
  }
}
